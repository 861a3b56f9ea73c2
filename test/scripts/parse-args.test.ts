import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';

const root = join(import.meta.dirname, '../..');

describe('an unknown option', function () {
  this.timeout(60_000);
  it('of a script ends it with one sentence', () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/sim.ts', '--bogus'], {
      cwd: root,
      encoding: 'utf8',
    });
    expect([status, stdout, stderr]).to.deep.equal([1, '', "Unknown option '--bogus'\n"]);
  });

  it('is read so by each script that npm runs and that has options', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
    const files = Object.values(scripts).flatMap((command) => command.match(/(?:scripts|bench)\/[\w/-]+\.ts/g) ?? []);
    const raw = [...new Set(files)].filter((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      return /import \{[^}]*\bparseArgs\b[^}]*\} from 'node:util'/.test(text) && !text.includes('runCommand(');
    });
    expect(files.length).to.be.above(20);
    expect(raw).to.deep.equal([]);
  });
});
