import type { Logger } from '@transitd/process';
import type { PeerStatus, TransferOutcome } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { MemberOperations, type MemberOperationsOptions } from '../../src/maintenance/member-operations.ts';
import type { MemberChange } from '../../src/membership/configuration-changes.ts';
import { encodeMembership, type Member } from '../../src/membership/membership.ts';
import { LeadershipTransferred } from '../../src/transport/forwarder.ts';

const members = [1, 2, 3].map(
  (id): Member => ({
    id,
    name: `n${id}`,
    apiAddress: `http://10.0.0.${id}:8200`,
    clusterAddress: `10.0.0.${id}:8201`,
    certificate: String(id).repeat(64),
    nonVoter: false,
    levels: { oldest: 1, newest: 1 },
  }),
);
const left = { id: 9, name: 'n4', certificate: '9'.repeat(64) };
const ofThree = { members, removed: [left] };
const confWith = (context: Uint8Array) => ({
  voters: [1, 2, 3],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
  context,
});

/** Node 1 leads nodes 2 and 3; `active` are heard. */
function setup({ active = [2, 3], transfer = 'resigned' as TransferOutcome['kind'], membership = ofThree } = {}) {
  const conf = confWith(encodeMembership(membership));
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
  } as unknown as MemberOperationsOptions['driver'];
  const made: MemberChange[] = [];
  const operator = new MemberOperations({
    driver,
    changes: {
      make: async (decide) => {
        const change = decide(conf, membership);
        done.push(change === undefined ? 'nothing' : 'change');
        if (change !== undefined) made.push(change);
        return change;
      },
    },
    standbys: { report: () => undefined, servingEnded: async (id) => void done.push(`end of serving of ${id}`) },
    transport: { unconnected: [] },
    log: {} as Logger,
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

  it('is told that a member does not exist, but may repeat a removal whose answer was lost', async () => {
    const { operator, done } = setup();
    const unknown = /^no member has the name or the id nosuch$/;
    expect(await failureOf(operator.remove('nosuch')))
      .to.have.property('message')
      .that.matches(unknown);
    for (const serverId of ['n4', '9']) await operator.remove(serverId);
    expect(done).to.deep.equal(['nothing', 'nothing']);
  });

  it('must name one of two members with the same name by its id', async () => {
    const [first, second, third] = members as [Member, Member, Member];
    const { operator, made } = setup({ membership: { members: [first, second, { ...third, name: 'n2' }], removed: [] } });
    for (const attempt of [operator.remove('n2'), operator.promote('n2'), operator.demote('n2')])
      expect(await failureOf(attempt)).to.have.property(
        'message',
        'the members with the ids 2, 3 have the same name n2: use an id',
      );
    expect(made).to.deep.equal([]);
    await operator.remove('3');
    expect(made.map(({ membership }) => membership.members.map(({ id }) => id))).to.deep.equal([[1, 2]]);
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
