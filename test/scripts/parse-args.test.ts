import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';

/** Started by other scripts. */
const parts = ['scripts/sim-worker.ts'];
const root = join(import.meta.dirname, '../..');

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
/** Scripts and benchmarks that are started by hand. */
const commands = ['scripts', 'scripts/cluster', 'bench'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .map((name) => `${folder}/${name}`)
    .filter((file) => file.endsWith('.ts') && /^(?:await|process|const \{ values|for|console|if|setTimeout)/m.test(read(file)))
    .filter((file) => !parts.includes(file)),
);

describe('an unknown option', function () {
  this.timeout(60_000);
  it('of a script ends it with one sentence', () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/sim.ts', '--bogus'], {
      cwd: root,
      encoding: 'utf8',
    });
    expect([status, stdout, stderr]).to.deep.equal([1, '', "Unknown option '--bogus'\n"]);
  });

  it('is read so by each script and each benchmark', () => {
    const raw = commands.filter((file) => {
      const text = read(file);
      return /import \{[^}]*\bparseArgs\b[^}]*\} from 'node:util'/.test(text) && !text.includes('runCommand(');
    });
    expect(raw).to.deep.equal([]);
  });
});

describe('the commands of this repository', () => {
  it('are at most twenty scripts of npm', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    expect(Object.keys(scripts).length).to.be.at.most(20);
  });

  it('begin with a comment that says what they do, under the name by which they are called', () => {
    const silent = commands.filter(
      (file) => !/^\/\/ `(?:npm (?:run )?[\w:]+|node (?:scripts|bench)\/[\w/-]+\.ts)\b/.test(read(file)),
    );
    expect(silent).to.deep.equal([]);
  });

  it('print that comment for --help', () => {
    const { status, stdout } = spawnSync(process.execPath, ['scripts/sim.ts', '--help'], { cwd: root, encoding: 'utf8' });
    expect(status).to.equal(0);
    expect(stdout).to.match(/^`npm run sim -- --seed N .*: plays one seed/);
    expect(stdout).to.include('--file F');
  });
});
