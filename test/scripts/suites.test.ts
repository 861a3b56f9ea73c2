import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runQueues, type Suite } from '../../scripts/test/suites.ts';

/** A suite whose command is this script. */
const suite = (script: string, more: Partial<Suite> = {}): Suite => ({
  name: 'suite',
  command: [process.execPath, '--input-type=module', '-e', `import fs from 'node:fs';\n${script}`],
  ...more,
});
const lines = (...values: readonly unknown[]): string =>
  values.map((value) => `fs.appendFileSync(process.env.TEST_RESULTS, ${JSON.stringify(`${JSON.stringify(value)}\n`)});`).join('');
const passed = { folder: 'a', file: 'a/a.test.ts', isLive: false, passed: 2, pending: 0, failures: [] };
const failed = { ...passed, failures: [{ title: 'answers', message: 'no answer' }] };
const end = { folder: 'a', ended: true };

describe('the queues of a run', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-queues-'));
  });
  after(() => rmSync(folder, { recursive: true }));
  const run = (...queues: readonly (readonly Suite[])[]) => runQueues(queues, process.env);
  const path = (name: string): string => JSON.stringify(join(folder, name));

  it('run side by side, each with one suite at a time', async () => {
    // Each waits for the other, so neither would end alone.
    const meets = (own: string, other: string): Suite =>
      suite(`fs.writeFileSync(${path(own)}, ''); while (!fs.existsSync(${path(other)}));`);
    const isAlone = suite(`process.exitCode = fs.existsSync(${path('after')}) ? 1 : 0;`);
    const results = await run(
      [meets('left', 'right'), isAlone, suite(`fs.writeFileSync(${path('after')}, '')`)],
      [meets('right', 'left')],
    );
    expect(results.map(({ check }) => check)).to.deep.equal([true, true, true, true]);
  });

  for (const [what, script, ended] of [
    ['every folder reached its end', lines(passed, end), true],
    ['the exit code reports a failed test', `${lines(failed, end)} process.exitCode = 1;`, true],
    ['a folder did not reach its end', lines(passed), false],
    ['the command failed without a failed test', `${lines(passed, end)} process.exitCode = 1;`, false],
  ] as const)
    it(`report a suite as ${ended ? 'ended' : 'not ended'} if ${what}`, async () => {
      const [results] = await run([suite(script, { folders: ['a'] })]);
      expect(results?.ended).to.equal(ended);
      expect(results?.files).to.deep.equal([script.includes('no answer') ? failed : passed]);
    });

  it('end a suite that does not end, and keep what it reported', async () => {
    const hangs = `${lines(passed)} setInterval(() => {}, 1e6);`;
    const [check, tests] = await run([
      suite('setInterval(() => {}, 1e6)', { limitMs: 200 }),
      suite(hangs, { folders: ['a'], limitMs: 2_000 }),
    ]);
    expect(check).to.include({ check: false });
    expect(tests).to.deep.equal({ files: [passed], ended: false });
  });

  it('report a command that cannot start', async () => {
    const absent: Suite = { name: 'absent', command: ['node_modules/.bin/absent'] };
    const [check, tests] = await run([absent, { ...absent, folders: ['a'] }]);
    expect(check).to.include({ check: false });
    expect(tests).to.include({ ended: false });
  });
});
