import type { PeerStatus, TransferOutcome } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { MemberOperations, type MemberOperationsParts } from '../../src/maintenance/member-operations.ts';
import type { MemberChange } from '../../src/membership/configuration-changes.ts';
import { encodeMembership, type Member } from '../../src/membership/membership.ts';
import { LeadershipTransferred } from '../../src/transport/leadership-transferred.ts';

const members = [1, 2, 3].map(
  (id): Member => ({
    id,
    name: `n${id}`,
    apiAddress: `http://10.0.0.${id}:8200`,
    clusterAddress: `10.0.0.${id}:8201`,
    certificate: String(id).repeat(64),
    nonVoter: false,
  }),
);
const membership = { members, removed: [] };
const conf = {
  voters: [1, 2, 3],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
  context: encodeMembership(membership),
};

/** Node 1 leads nodes 2 and 3; `active` are heard. */
function setup({ active = [2, 3], transfer = 'resigned' as TransferOutcome['kind'] } = {}) {
  const done: string[] = [];
  const peers = [2, 3].map((id) => ({ id, active: active.includes(id) }) as PeerStatus);
  const driver = {
    status: () => ({ nodeId: 1, term: 7 }),
    consensus: () => ({ conf }),
    peers: () => peers,
    transfer: (_to: undefined, end: (outcome: TransferOutcome) => void) => {
      done.push('transfer');
      end({ kind: transfer } as TransferOutcome);
    },
  } as unknown as MemberOperationsParts['driver'];
  const made: MemberChange[] = [];
  const operator = new MemberOperations({
    driver,
    changes: {
      make: async (decide) => {
        const change = decide(conf, membership);
        done.push(change === undefined ? 'nothing' : 'change');
        if (change !== undefined) made.push(change);
      },
    },
    standbys: { report: () => undefined, servingEnded: async (id) => void done.push(`end of serving of ${id}`) },
  });
  return { operator, done, made };
}

const failureOf = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('an operator', () => {
  it('removes a member, and gets the answer once the member can no longer serve', async () => {
    const { operator, done, made } = setup();
    await operator.remove('n3');
    expect(done).to.deep.equal(['change', 'end of serving of 3']);
    expect(made[0]?.members).to.deep.equal([{ id: 3, to: 'none' }]);
  });

  it('removes nothing under an unknown name', async () => {
    const { operator, done } = setup();
    await operator.remove('n9');
    expect(done).to.deep.equal([]);
  });

  for (const what of ['remove', 'demote'] as const) {
    it(`gets LeadershipTransferred, and nothing else is done, on an attempt to ${what} the active node`, async () => {
      const { operator, done } = setup();
      expect(await failureOf(operator[what]('n1')))
        .to.be.instanceOf(LeadershipTransferred)
        .with.property('term', 7);
      expect(done).to.deep.equal(['transfer']);
    });

    it(`is refused as busy when no node takes over leadership from the node to ${what}`, async () => {
      const { operator, done } = setup({ transfer: 'aborted' });
      expect(await failureOf(operator[what]('n1')))
        .to.be.instanceOf(StoreError)
        .with.property('code', 'busy');
      expect(done).to.deep.equal(['transfer']);
    });

    it(`cannot ${what} the active node or another when no majority would be left`, async () => {
      const { operator, done } = setup({ active: [2] });
      for (const name of ['n1', 'n2'])
        expect(await failureOf(operator[what](name)), name).to.have.property('code', 'invalid_request');
      expect(done).to.deep.equal([]);
    });
  }

  it('must name a server, which must exist for a promotion or demotion', async () => {
    const { operator } = setup();
    for (const attempt of [
      operator.remove(''),
      operator.promote(''),
      operator.demote(''),
      operator.promote('n9'),
      operator.demote('9'),
    ])
      expect(await failureOf(attempt)).to.have.property('code', 'invalid_request');
  });
});
