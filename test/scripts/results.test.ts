import { expect } from 'chai';
import { type EndedTask, type FileResults, resultsOf, sum } from '../../scripts/test/results.ts';

const task = (outputs: readonly string[], exitCode?: number): EndedTask => ({
  taskId: 'a#test',
  directory: 'packages/a',
  resolvedTaskDefinition: { outputs },
  ...(exitCode !== undefined && { execution: { exitCode } }),
});
const suite = ['.turbo/test.json'];
const passed: FileResults = { folder: 'packages/a', file: 'a.test.ts', isLive: false, passed: 2, pending: 1, failures: [] };
const failed: FileResults = { ...passed, failures: [{ title: 'answers', message: 'no answer' }] };
const none = { passed: 0, failed: 0, pending: 0 };

describe('the results of a task', () => {
  for (const [what, results, expected] of [
    ['are those that its suite wrote', resultsOf(task(suite, 0), [passed]), { passed: 2, failed: 0, pending: 1 }],
    [
      'are the failed tests, which the exit code reports too',
      resultsOf(task(suite, 1), [failed]),
      { passed: 2, failed: 1, pending: 1 },
    ],
    ['are one failure if the suite did not reach its end', resultsOf(task(suite, 0), undefined), { ...none, failed: 1 }],
    [
      'have a failure if it failed without a failed test',
      resultsOf(task(suite, 1), [passed]),
      { passed: 2, failed: 1, pending: 1 },
    ],
    ['have a failure if it did not end', resultsOf(task(suite), [passed]), { passed: 2, failed: 1, pending: 1 }],
    ['are one case of a command without tests', resultsOf(task([], 0), undefined), { ...none, passed: 1 }],
    ['are one failure of a command that failed', resultsOf(task([], 1), undefined), { ...none, failed: 1 }],
  ] as const)
    it(what, () => {
      expect(sum(results)).to.deep.equal(expected);
    });
});
