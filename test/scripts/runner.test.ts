// @live
// `npm test` of a small repository with the real runner, reporter and turbo.json.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';

const root = join(import.meta.dirname, '../..');
/** The runner is itself run by npm and Turborepo here: the small one must not take their variables for its own. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:TURBO_|npm_|TEST_RUNS)/.test(name)));

describe('npm test', function () {
  this.timeout(120_000);
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-runner-'));
    for (const path of ['turbo.json', 'scripts/test.ts', 'scripts/test', 'scripts/parse-args.ts', 'test/safety.ts'])
      cpSync(join(root, path), join(folder, path), { recursive: true });
    for (const name of ['reporter.mjs', 'unhandled-rejections.mjs']) cpSync(join(root, 'test', name), join(folder, 'test', name));
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const mocha = 'mocha --no-config --reporter';
    write('package.json', {
      ...{ name: 'small', private: true, type: 'module', packageManager: 'npm@11.0.0', workspaces: ['packages/*'] },
      scripts: { check: 'node -e 0', 'test:live': `${mocha} test/reporter.mjs test/live.test.mjs` },
    });
    write('packages/a/package.json', {
      ...{ name: '@transitd/a', version: '0.1.0', type: 'module' },
      scripts: { test: `${mocha} ../../test/reporter.mjs a.test.mjs` },
    });
    write('package-lock.json', {
      ...{ name: 'small', lockfileVersion: 3, requires: true },
      packages: {
        '': { name: 'small', workspaces: ['packages/*'] },
        'node_modules/@transitd/a': { resolved: 'packages/a', link: true },
        'packages/a': { name: '@transitd/a', version: '0.1.0' },
      },
    });
    write('packages/a/a.test.mjs', "it('passes', () => {});\nit.skip('waits', () => {});\n");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function write(path: string, content: object | string): void {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), typeof content === 'string' ? content : JSON.stringify(content));
  }

  /** Returns the exit code, the last line and the whole output. */
  function run(live: string): { readonly code: number | null; readonly last: string | undefined; readonly output: string } {
    write('test/live.test.mjs', `// @live\nimport fs from 'node:fs';\n${live}\n`);
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/test.ts'], { cwd: folder, encoding: 'utf8', env });
    const output = stdout + stderr;
    return { code: status, last: stdout.trimEnd().split('\n').at(-1), output };
  }

  it('adds up the results of all suites and the check', () => {
    const { code, last, output } = run("it('answers', () => {});");
    expect({ code, last }, output).to.deep.equal({ code: 0, last: '3 passed, 0 failed, 1 skipped' });
  });

  it('runs a failed file of live tests again, and says so', () => {
    const { code, last, output } = run(
      "it('answers', () => { if (!fs.existsSync('tried')) { fs.writeFileSync('tried', ''); throw new Error('no answer'); } });",
    );
    expect({ code, last }, output).to.deep.equal({ code: 0, last: '3 passed, 0 failed, 1 skipped' });
    expect(output).to.match(/Failed:\n +test\/live\.test\.mjs: answers\n +Error: no answer/);
    expect(output).to.include('UNSTABLE: failed at first, passed in a second run');
  });

  it('runs none again that names a seed', () => {
    const { code, last, output } = run("it('answers', () => { throw new Error('seed 7 fails'); });");
    expect({ code, last }, output).to.deep.equal({ code: 1, last: '2 passed, 1 failed, 1 skipped' });
  });

  it('fails if a suite ends before its last test, although its exit code is 0', () => {
    const { code, last, output } = run("it('answers', () => {});\nit('ends', () => process.exit(0));");
    expect({ code, last }, output).to.deep.equal({ code: 1, last: '2 passed, 1 failed, 1 skipped' });
  });

  it('fails if the run itself is ended, although the tasks that had ended until then have passed', () => {
    const { code, last, output } = run(`it('ends the run', async () => {
      const status = (pid) => fs.readFileSync('/proc/' + pid + '/status', 'utf8');
      let pid = process.pid;
      while (!/^Name:\\s+turbo$/m.test(status(pid))) pid = Number(/^PPid:\\s+(\\d+)$/m.exec(status(pid))[1]);
      process.kill(pid, 'SIGTERM');
      await new Promise(() => setInterval(() => {}, 1000));
    });`);
    expect(code, output).to.equal(1);
    expect(last, output).to.match(/^\d passed, [12] failed/);
    expect(output).to.match(/Failed:\n +\/\/#test:live: did not end/);
  });
});
