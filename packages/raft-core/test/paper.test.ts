import { expect } from 'chai';
import { Cluster } from './core/cluster.ts';
import { bytes, coreOf, leader, settle } from './core/sole-voter.ts';

const storedLog = { lastIndex: 5, terms: [{ term: 2, firstIndex: 1 }], hardState: { term: 2, vote: 1, commit: 0 } };

describe('the Raft paper, on a sole voter', () => {
  it('§5.1: a term begins by raising it and never falls', () => {
    const core = coreOf({ hardState: { term: 7, vote: 1, commit: 0 } });
    core.tick(0);
    expect(core.ready().hardState).to.deep.equal({ term: 8, vote: 1, commit: 0 });
    core.tick(1);
    expect(core.status().term).to.equal(8);
  });

  it('§5.2: a candidate leads only once its term and its vote for itself are durable, or a crash could let it vote twice', () => {
    const core = coreOf();
    core.tick(0);
    core.persisted(0);
    expect(core.status().role, 'nothing of this term was written').to.equal('candidate');
    const ballot = core.ready();
    expect(ballot.hardState).to.deep.equal({ term: 1, vote: 1, commit: 0 });
    expect(ballot.entries).to.deep.equal([]);
    expect(core.hasReady()).to.equal(false);
    expect(core.status().role).to.equal('candidate');
    core.persisted(ballot.seq);
    expect(core.status()).to.include({ role: 'leader', leader: 1, term: 1 });
  });

  it('§5.3: a leader only appends, its entries in the order of the proposals', () => {
    const core = leader();
    const results = ['a', 'b', 'c'].map((text) => core.propose(bytes(text)));
    expect(results.map((result) => result.accepted && result.index)).to.deep.equal([2, 3, 4]);
    expect(core.ready().entries.map(({ index, term, data }) => [index, term, ...data])).to.deep.equal([
      [2, 1, 97],
      [3, 1, 98],
      [4, 1, 99],
    ]);
  });

  it('§5.3: an entry commits only when a majority, here this node’s disk, holds it', () => {
    const core = leader();
    core.propose(bytes('a'));
    const first = core.ready();
    core.propose(bytes('b'));
    const second = core.ready();
    expect(core.status().commitIndex).to.equal(1);
    core.persisted(first.seq);
    expect(core.status().commitIndex).to.equal(2);
    core.persisted(second.seq);
    expect(core.status().commitIndex).to.equal(3);
  });

  it('§5.3: committed entries are handed out in order, each once, and never before they are stable here', () => {
    const core = leader();
    core.propose(bytes('a'));
    core.propose(bytes('b'));
    const written = core.ready();
    expect(written.committed).to.deep.equal([]);
    core.persisted(written.seq);
    expect(core.ready().committed.map(({ index }) => index)).to.deep.equal([2, 3]);
    expect(settle(core)).to.deep.equal([]);
  });

  it('§5.4.2: entries of an earlier term commit only through an entry of the leader’s own term', () => {
    const core = coreOf(storedLog);
    core.tick(0);
    const ballot = core.ready();
    core.persisted(ballot.seq);
    expect(core.status()).to.include({ role: 'leader', stableIndex: 5, commitIndex: 0, lastIndex: 6 });
    const noop = core.ready();
    expect(noop.entries).to.deep.equal([{ term: 3, index: 6, type: 'noop', data: new Uint8Array(0) }]);
    core.persisted(noop.seq);
    expect(core.status().commitIndex).to.equal(6);
  });

  it('§5.4.3: a restart applies everything again that the state machine lacks, from the disk', () => {
    const core = coreOf(storedLog, {}, 2);
    core.tick(0);
    const batches = settle(core);
    expect(batches.flatMap(({ readLog }) => readLog ?? [])).to.deep.equal([{ for: 0, lo: 3, hi: 5 }]);
    const stored = [3, 4, 5].map((index) => ({ term: 2, index, type: 'normal' as const, data: bytes('x') }));
    core.logRead({ for: 0, lo: 3, hi: 5 }, stored);
    expect(settle(core).flatMap(({ committed }) => committed.map(({ index }) => index))).to.deep.equal([3, 4, 5, 6]);
  });

  it('§8: a read waits for a commit in the leader’s own term, because the leader cannot know of later commits before', () => {
    const core = coreOf(storedLog);
    core.tick(0);
    core.persisted(core.ready().seq);
    expect(core.readIndex(1)).to.equal(undefined);
    const noop = core.ready();
    expect(noop.reads).to.deep.equal([]);
    core.persisted(noop.seq);
    expect(core.ready().reads).to.deep.equal([{ ctx: 1, index: 6 }]);
    core.readIndex(2);
    expect(core.ready().reads).to.deep.equal([{ ctx: 2, index: 6 }]);
  });
});

describe('the Raft paper, on several nodes', () => {
  const change = (id: number, to: 'voter' | 'none') => ({ kind: 'change' as const, members: [{ id, to }] });

  it('§5.1: a node that hears of a later term adopts it and follows', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    const session = cluster.sentOf('Append')[0]?.session ?? 0;
    const later = { from: 2, to: 1, term: 9, clusterId: 'c', session, type: 'HeartbeatResp', round: 1, fit: true } as const;
    leader.core.step(later, cluster.nowMs);
    expect(leader.core.status()).to.include({ role: 'follower', term: 9, vote: 0, leader: 0 });
  });

  it('§5.2: split votes end after a while, because elections are spread at random', () => {
    for (let seed = 1; seed <= 30; seed++) {
      const own = Object.fromEntries([1, 2, 3, 4, 5].map((id) => [id, { seed: seed * 10 + id }]));
      const cluster = new Cluster([1, 2, 3, 4, 5], {}, own);
      cluster.pass(8_000);
      expect(cluster.leaders(), `seed ${seed}`).to.have.length(1);
    }
  });

  it('§5.3, log matching: entries of one index and term are preceded by the same log', () => {
    const own = { 1: { terms: [1, 1, 3, 3] }, 2: { terms: [1, 1, 2, 2, 2] }, 3: { terms: [1] } };
    const cluster = new Cluster([1, 2, 3], {}, own);
    const leader = cluster.elect(1);
    cluster.pass(500);
    for (const { entries } of cluster.nodes.values()) expect(entries).to.deep.equal(leader.entries);
  });

  it('§5.3: a leader never overwrites or deletes an entry of its own log', () => {
    const own = { 1: { terms: [1, 1, 3, 3] }, 2: { terms: [1, 1, 2, 2, 2, 2, 2, 2] } };
    const cluster = new Cluster([1, 2, 3], {}, own);
    const before = [...cluster.node(1).entries];
    const leader = cluster.elect(1);
    cluster.pass(500);
    expect(leader.entries.slice(0, before.length)).to.deep.equal(before);
  });

  it('§5.4.1: a node that lacks a committed entry is not elected, so every later leader has it', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to }) => from !== 3 && to !== 3;
    leader.core.propose(bytes('committed'));
    cluster.settle();
    expect(leader.core.status().commitIndex).to.equal(2);
    cluster.passes = ({ from, to }) => from !== 1 && to !== 1;
    cluster.pass(3_000, [3]);
    expect(cluster.leaders()).not.to.include(3);
    cluster.pass(4_000);
    expect(cluster.node(2).core.status().role).to.equal('leader');
    expect(cluster.node(3).texts()).to.include('committed');
  });

  it('§5.5: duplicated messages change nothing', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.core.propose(bytes('a'));
    cluster.settle();
    const status = [...cluster.nodes.values()].map(({ core }) => core.status());
    for (const message of [...cluster.sent]) cluster.deliver(message);
    cluster.settle();
    expect([...cluster.nodes.values()].map(({ core }) => core.status())).to.deep.equal(status);
    expect(leader.texts()).to.deep.equal(['noop', 'a']);
  });

  it('§6: removed members do not disturb the cluster', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to, type }) => (from !== 3 && to !== 3) || type === 'PreVote' || type === 'Vote';
    leader.core.proposeConf(change(3, 'none'));
    cluster.pass(10_000);
    expect(leader.core.status()).to.include({ role: 'leader', term: 1 });
  });

  it('§7: a snapshot brings what the log has deleted, with the configuration as of its index', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to }) => from !== 3 && to !== 3;
    for (const name of ['a', 'b', 'c']) leader.core.propose(bytes(name));
    cluster.settle();
    leader.compact(4);
    cluster.passes = () => true;
    cluster.pass(300);
    expect(cluster.node(3).receive(leader)).to.equal(true);
    cluster.pass(300);
    expect(cluster.node(3).core.status()).to.include({ baseIndex: 4, commitIndex: 4 });
    expect(cluster.node(3).core.status().conf.voters).to.deep.equal([1, 2, 3]);
  });

  it('§8: a read misses nothing that was committed before it, even if another node leads meanwhile', () => {
    const cluster = new Cluster([1, 2, 3]);
    const old = cluster.elect(1);
    cluster.passes = ({ from, to }) => from !== 1 && to !== 1;
    cluster.pass(900, [2, 3]);
    cluster.passUntil(() => cluster.leaders().some((id) => id !== 1), [2, 3]);
    cluster.node(cluster.leaders().find((id) => id !== 1) ?? 0).core.propose(bytes('newer'));
    cluster.settle();
    expect(old.core.status().role, 'it does not know').to.equal('leader');
    old.core.readIndex(1);
    cluster.pass(500, [1]);
    expect(old.reads).to.deep.equal([]);
    expect(old.core.leaseRead(cluster.nowMs)).to.equal(undefined);
  });

  it('thesis §3.10: leadership is transferred without an election timeout', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.pass(200);
    leader.core.transferLeadership(3);
    cluster.settle();
    expect(cluster.leaders()).to.deep.equal([3]);
  });

  it('thesis §4.2.3, §9.6: a node that was cut off does not depose a leader that the others hear', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to }) => from !== 3 && to !== 3;
    cluster.pass(10_000);
    cluster.passes = () => true;
    cluster.pass(1_000);
    expect(leader.core.status()).to.include({ role: 'leader', term: 1 });
    expect(cluster.node(3).core.status()).to.include({ role: 'follower', term: 1, leader: 1 });
  });
});
