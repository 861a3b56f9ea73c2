import { expect } from 'chai';
import type { FileResults } from '../../scripts/test/results.ts';
import { sum } from '../../scripts/test/results.ts';
import { isFinal, mayRunTwice, withSecondRuns } from '../../scripts/test/second-run.ts';

const file = (name: string, messages: string[] = [], folder = '', title = 'answers'): FileResults => ({
  folder,
  file: name,
  passed: 3,
  pending: 0,
  failures: messages.map((message) => ({ title, message })),
});

describe('the second run of failed tests', () => {
  const live = file('test/process/start.test.ts', ['no answer within 10 s']);

  it('is for the failed files of live tests', () => {
    const http = file('packages/http/test/server.test.ts', ['no answer within 10 s'], 'packages/http');
    expect(mayRunTwice([file('test/process/doctor.test.ts'), live, http])).to.deep.equal([live, http]);
  });

  for (const [why, final] of [
    [
      'names the seed of a property',
      file('packages/api/test/a.test.ts', ['Property failed after 3 tests\n{ seed: 17 }'], 'packages/api'),
    ],
    ['is in a simulation', file('packages/raft-sim/test/play.test.ts', ['a leader lacks an entry'], 'packages/raft-sim')],
    ['reports a lost write', file('test/cluster/faults.test.ts', ['1 acknowledged write is lost'])],
    ['tests acknowledged writes', file('test/cluster/a.test.ts', ['1 !== 2'], '', 'loses no acknowledged write')],
    ['tests what survives a fault', file('test/cluster/a.test.ts', ['1 !== 2'], '', 'and its writes survive')],
    ['reports a history that is not linearizable', file('test/cluster/faults.test.ts', ['the history is not linearizable'])],
    ['needs what its script prepared', file('test/e2e/cluster.test.ts', ['no answer within 10 s'])],
    ['has no file', file('packages/http', ['a rejection that nobody handles'], 'packages/http')],
  ] as const)
    it(`is refused to all if one failure ${why}`, () => {
      expect(mayRunTwice([live, final])).to.deep.equal([]);
    });

  for (const text of [
    'loses no acknowledged write',
    'keeps every acknowledged write over 20 kills',
    'finishes requests in flight when it is stopped, and loses none',
    'a change that another one overtakes, and neither change is lost',
    'has lost no version that it used when the secondary is promoted',
    'forget the lost records',
    'two entries of the log were lost',
    'lose at most what comes after the position of the promotion',
    'a cluster that lost the majority of its disks',
    'opens a log that is losing data',
    '3 losses:\nn1: key-1 was acknowledged: 404',
    'hand over without loss',
    'expected { lossless: false } to deeply equal { lossless: true }',
    'a key leaks into the log',
    'the history is not linearizable',
    'Property failed after 3 tests { seed: 17 }',
    'and its writes survive',
  ])
    it(`is refused to "${text.replace('\n', ' ')}"`, () => {
      expect(isFinal(text)).to.equal(true);
    });

  for (const text of [
    'n2 became active after n1 lost the leadership',
    '{"level":"info","msg":"this node lost the leadership","term":3,"index":17}',
    'the vote was lost, and the next one waits for the election timeout',
    'keeps the present certificate when the answer is lost',
    'resumes at the cursor after the connection was lost',
    'end before the next line if the caller has lost its rights',
    'is lost after a jump of 5 s, and returns when the clock is set back',
    'no answer within 10 s from the closest node',
  ])
    it(`is for "${text}"`, () => {
      expect(isFinal(text)).to.equal(false);
    });

  it('is refused if many files failed', () => {
    const failed = [1, 2, 3, 4].map((n) => file(`test/process/${n}.test.ts`, ['no answer within 10 s']));
    expect(mayRunTwice(failed)).to.deep.equal([]);
    expect(mayRunTwice(failed.slice(1))).to.have.length(3);
  });

  it('replaces the results of its file, and of no other', () => {
    const other = file('test/process/doctor.test.ts', ['exit code 1']);
    const second = { ...live, passed: 4, failures: [] };
    expect(sum(withSecondRuns([live, other], [second]))).to.deep.equal({ passed: 7, failed: 1, pending: 0 });
    expect(sum(withSecondRuns([live, other], []))).to.deep.equal({ passed: 6, failed: 2, pending: 0 });
  });
});
