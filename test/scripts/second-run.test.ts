import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FileResults } from '../../scripts/test/results.ts';
import { sum } from '../../scripts/test/results.ts';
import { mayRunTwice, withSecondRuns } from '../../scripts/test/second-run.ts';
import { safety } from '../safety.ts';

const file = (name: string, messages: string[] = [], isLive = true): FileResults => ({
  folder: '',
  file: name,
  isLive,
  passed: 3,
  pending: 0,
  failures: messages.map((message) => ({ title: 'answers', message })),
});

describe('the second run of failed tests', () => {
  const live = file('test/process/start.test.ts', ['no answer within 10 s']);

  it('is for the failed files that have the tag of live tests', () => {
    const http = file('packages/http/test/server.test.ts', ['no answer within 10 s']);
    expect(mayRunTwice([file('test/process/doctor.test.ts'), live, http])).to.deep.equal([live, http]);
  });

  for (const [why, final] of [
    ['has no such tag', file('packages/raft-core/test/core.test.ts', ['a leader lacks an entry'], false)],
    ['names the seed of a property', file('packages/api/test/a.test.ts', ['Property failed after 3 tests\n{ seed: 17 }'])],
    ['is about safety', file('test/cluster/a.test.ts', [`AssertionError: ${safety}: expected [ 'k1 version 2' ] to equal []`])],
  ] as const)
    it(`is refused to all if one failure ${why}`, () => {
      expect(mayRunTwice([live, final])).to.deep.equal([]);
    });

  it('is refused to what the checks of losses, of histories and of secrets throw', () => {
    for (const [path, call] of [
      ['test/cluster/harness/survivors.ts', /throw new Error\(`\$\{safety\}: \$\{found\.length\} losses/],
      ['test/process/live-server.ts', /throw new Error\(`\$\{safety\}: a secret was written/],
    ] as const)
      expect(readFileSync(join(import.meta.dirname, '../..', path), 'utf8')).to.match(call);
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
