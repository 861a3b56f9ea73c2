import { type Entry, type Message, soleVoter, type Term } from '@transitd/raft-core';
import { expect } from 'chai';
import { Coverage } from '../src/cluster/checks/coverage.ts';
import { ObservedNode } from '../src/cluster/checks/observed-node.ts';
import { Promises } from '../src/cluster/checks/promises.ts';
import { Safety } from '../src/cluster/checks/safety.ts';
import { Violation } from '../src/index.ts';

/** Checks the answer of node 1 to the leader of term 1, that it has stored three entries, when its disk has entries of these terms. */
function answersWith(terms: readonly Term[]): void {
  const entries = terms.map((term, at): Entry => ({ index: at + 1, term, type: 'normal', data: new Uint8Array(0) }));
  const node = new ObservedNode({
    ...{ nodeId: 1, base: { index: 0, term: 0, conf: soleVoter(1), confIndex: 0 }, entries, lastIndex: entries.length },
    ...{ hardState: { term: 2, vote: 0, commit: 0 }, entry: (index: number) => entries[index - 1] },
  } as unknown as ObservedNode['disk']);
  const promises = new Promises({ electionMs: 1_000, localMs: () => 0, leaseMs: () => 0 });
  const safety = new Safety(new Coverage(), promises);
  safety.started(node);
  node.status = { term: 2 } as NonNullable<ObservedNode['status']>;
  const envelope = { from: 1, to: 2, term: 1, session: 1, clusterId: 'simulated' };
  safety.sent(node, { ...envelope, type: 'AppendResp', ok: true, match: 3, round: 0 } satisfies Message);
}

describe('the simulator’s check of a late answer to the leader of an earlier term', () => {
  it('allows one about durable entries', () => answersWith([1, 1, 1]));

  for (const [what, terms] of [
    ['were neither written nor replaced', [1, 1]],
    ['a later leader replaced before they were written', [1, 2]],
  ] as const)
    it(`refuses one about entries that ${what}`, () => {
      expect(() => answersWith(terms)).to.throw(Violation, /only durable entries are acknowledged/);
    });
});
