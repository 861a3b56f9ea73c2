import type { NodeId, PeerStatus } from '@transitd/raft-core';
import { memoryStore, StoreError, type Transaction } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { changeSettings, defaultSettings, readSettings } from '../../src/maintenance/autopilot-settings.ts';
import { clusterState, deadServer, type LeaderView, Stability } from '../../src/maintenance/autopilot-state.ts';
import type { Member } from '../../src/membership/membership.ts';

const member = (id: NodeId): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: String(id).repeat(64),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
});
const peer = (id: NodeId, change: Partial<PeerStatus> = {}): PeerStatus => ({
  id,
  learner: false,
  state: 'replicate',
  match: 5000,
  next: 5001,
  active: true,
  silentMs: 100,
  fit: true,
  ...change,
});
/** The view of node 1, which leads these peers. */
const view = (peers: readonly PeerStatus[], learners: readonly NodeId[] = []): LeaderView => {
  const ids = [1, ...peers.map(({ id }) => id)];
  const voters = ids.filter((id) => !learners.includes(id));
  return {
    status: { nodeId: 1, term: 7, lastIndex: 5000 },
    termStartIndex: 4000,
    conf: { voters, votersOutgoing: [], learners, learnersNext: [], autoLeave: false, context: new Uint8Array() },
    membership: { members: ids.map(member), removed: [] },
    peers,
  };
};
const stateOf = (...[peers, learners]: Parameters<typeof view>) => clusterState(view(peers, learners), defaultSettings);

describe('the health of a cluster', () => {
  for (const { what, change, healthy } of [
    { what: 'heard recently, with an up-to-date log', change: {}, healthy: true },
    { what: 'silent for longer than the threshold', change: { silentMs: 10_001 }, healthy: false },
    { what: 'silent for exactly the threshold', change: { silentMs: 10_000 }, healthy: true },
    { what: 'with a lag above max_trailing_logs', change: { match: 3999 }, healthy: false },
    { what: 'with a lag of exactly max_trailing_logs', change: { match: 4000 }, healthy: true },
    { what: 'that is sealed and could not lead', change: { fit: false }, healthy: false },
  ]) {
    it(`counts a member ${what} as ${healthy ? 'healthy' : 'not healthy'}`, () => {
      const state = stateOf([peer(2, change), peer(3)]);
      expect(state.servers[1]?.healthy).to.equal(healthy);
      expect([state.healthy, state.failureTolerance]).to.deep.equal([healthy, healthy ? 1 : 0]);
    });
  }

  it('counts only voters in the failure tolerance', () => {
    expect(stateOf([peer(2), peer(3, { learner: true })], [3]).failureTolerance).to.equal(0);
    expect(stateOf([peer(2), peer(3), peer(4), peer(5)]).failureTolerance).to.equal(2);
    expect(stateOf([peer(2, { fit: false }), peer(3, { fit: false })]).failureTolerance).to.equal(0);
  });

  it('reports no term that the leader does not know', () => {
    const terms = stateOf([peer(2, { match: 3999 }), peer(3, { match: 4000 })]).servers.map(({ lastTerm }) => lastTerm);
    expect(terms).to.deep.equal([7, 0, 7]);
  });

  it('records since when each member has been healthy or unhealthy', () => {
    const stability = new Stability();
    stability.observe(stateOf([peer(2), peer(3)]), 1000);
    stability.observe(stateOf([peer(2, { fit: false }), peer(3)]), 2000);
    stability.observe(stateOf([peer(2, { fit: false })]), 3000);
    expect([1, 2, 3].map((id) => stability.sinceUtcMs(id))).to.deep.equal([1000, 2000, undefined]);
    stability.clear();
    expect(stability.sinceUtcMs(1)).to.equal(undefined);
  });
});

describe('a dead server', () => {
  const on = { ...defaultSettings, cleanupDeadServers: true, minQuorum: 3, deadServerLastContactThreshold: 60 };
  const dead = { active: false, silentMs: 60_001 };
  const rows: readonly {
    what: string;
    settings: typeof on;
    peers: readonly PeerStatus[];
    learners?: readonly NodeId[];
    removes: NodeId | undefined;
  }[] = [
    { what: 'is removed above min_quorum', settings: on, peers: [peer(2), peer(3), peer(4, dead)], removes: 4 },
    { what: 'stays at min_quorum', settings: on, peers: [peer(2), peer(3, dead)], removes: undefined },
    {
      what: 'stays without cleanup_dead_servers',
      settings: { ...on, cleanupDeadServers: false },
      peers: [peer(2), peer(3), peer(4, dead)],
      removes: undefined,
    },
    {
      what: 'stays with a min_quorum below three',
      settings: { ...on, minQuorum: 2 },
      peers: [peer(2), peer(3), peer(4, dead)],
      removes: undefined,
    },
    {
      what: 'is not removed before the threshold',
      settings: on,
      peers: [peer(2), peer(3), peer(4, { active: false, silentMs: 60_000 })],
      removes: undefined,
    },
    {
      what: 'is not removed while it is alive',
      settings: on,
      peers: [peer(2), peer(3), peer(4, { silentMs: 60_001 })],
      removes: undefined,
    },
    {
      what: 'without a vote is removed at min_quorum too',
      settings: on,
      peers: [peer(2), peer(3), peer(4, dead)],
      learners: [4],
      removes: 4,
    },
  ];
  for (const { what, settings, peers, learners = [], removes } of rows)
    it(what, () => {
      expect(deadServer(clusterState(view(peers, learners), settings), settings)).to.equal(removes);
    });
});

describe('the settings of autopilot', () => {
  it('gives up if another change comes first at each attempt', async () => {
    const store = memoryStore();
    let commits = 0;
    const disturbed = {
      ...store,
      commit: async (transaction: Transaction) => {
        commits += 1;
        await changeSettings(store, { minQuorum: commits });
        return store.commit(transaction);
      },
    };
    const failure = await changeSettings(disturbed, { minQuorum: 5 }).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(StoreError).with.property('code', 'busy');
    expect(commits).to.equal(5);
  });

  it('are the defaults until they are changed; a change of one setting keeps the values of the other settings', async () => {
    const store = memoryStore();
    expect(await readSettings(store)).to.deep.equal(defaultSettings);
    await changeSettings(store, { minQuorum: 5 });
    await changeSettings(store, { cleanupDeadServers: true });
    expect(await readSettings(store)).to.deep.equal({ ...defaultSettings, minQuorum: 5, cleanupDeadServers: true });
  });

  it('are not stored when they could together cost the quorum', async () => {
    const store = memoryStore();
    await changeSettings(store, { minQuorum: 3, cleanupDeadServers: true });
    for (const change of [
      { minQuorum: 2 },
      { minQuorum: -1, cleanupDeadServers: false },
      { deadServerLastContactThreshold: 59 },
      { lastContactThreshold: 0 },
      { maxTrailingLogs: -1 },
    ]) {
      const failure = await changeSettings(store, change).catch((error: unknown) => error);
      expect(failure, JSON.stringify(change)).to.have.property('code', 'invalid_request');
    }
    expect((await readSettings(store)).minQuorum).to.equal(3);
  });

  it('of an unknown format are an error', async () => {
    const store = memoryStore();
    await store.commit({ conditions: [], writes: [{ path: 'core/autopilot', value: Buffer.from('{"format":2}') }] });
    expect(await readSettings(store).catch((error: unknown) => error)).to.be.instanceOf(Error);
  });
});
