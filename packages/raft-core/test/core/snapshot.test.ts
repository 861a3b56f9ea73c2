import { expect } from 'chai';
import { bytes, Cluster, confOf } from './cluster.ts';

/** A leader that has compacted entries that node 3 lacks. */
function behind() {
  const cluster = new Cluster([1, 2, 3]);
  const leader = cluster.elect(1);
  cluster.passes = ({ from, to }) => from !== 3 && to !== 3;
  for (const name of ['a', 'b', 'c', 'd']) leader.core.propose(bytes(name));
  cluster.settle();
  cluster.pass(1_100, [1]);
  leader.compact(4);
  cluster.passes = () => true;
  cluster.pass(300);
  const three = cluster.node(3);
  const peer = () => leader.core.peers().find(({ id }) => id === 3);
  return { cluster, leader, three, peer };
}

describe('snapshots', () => {
  it('are offered where the log does not reach back, and the peer receives nothing else meanwhile', () => {
    const { cluster, leader, three, peer } = behind();
    expect(peer()).to.include({ state: 'snapshot', pendingSnapshot: 5 });
    expect(three.fetches).to.deep.equal([{ from: 1, meta: { index: 5, term: 1, conf: confOf([1, 2, 3]), confIndex: 0 } }]);
    const from = cluster.sent.length;
    leader.core.propose(bytes('e'));
    cluster.settle();
    expect(cluster.sentOf('Append', from).filter(({ to }) => to === 3)).to.deep.equal([]);
  });

  it('are installed in one step, acknowledged when that is durable, and followed by the log', () => {
    const { cluster, leader, three, peer } = behind();
    leader.core.propose(bytes('e'));
    cluster.settle();
    three.holdsWrites = true;
    expect(three.receive(leader)).to.equal(true);
    cluster.settle();
    expect(peer()?.state, 'not durable yet').to.equal('snapshot');
    expect(three.held.at(-1)?.commitHint, 'no hint above what is in force').to.equal(undefined);
    cluster.post(three.persist());
    three.holdsWrites = false;
    cluster.pass(300);
    expect(three.base.index).to.equal(6);
    expect(peer()).to.include({ state: 'replicate', match: 6 });
    leader.core.propose(bytes('f'));
    cluster.settle();
    expect(three.texts()).to.deep.equal(['f']);
    expect(three.core.status()).to.include({ baseIndex: 6, lastIndex: 7 });
  });

  it('no higher commit index is stored during an installation, alone or with a term: a crash would find it above the old log’s end', () => {
    const { cluster, leader, three } = behind();
    const oldEnd = three.core.status().lastIndex;
    cluster.passes = () => false;
    three.holdsWrites = true;
    three.receive(leader);
    cluster.settle();
    const word = {
      from: 2,
      to: 3,
      term: 2,
      clusterId: 'c',
      session: 1,
      type: 'Heartbeat',
      commit: 5,
      round: 1,
      leaseMs: 150,
    } as const;
    three.core.step(word, cluster.nowMs);
    cluster.settle();
    expect(three.held.map(({ hardState }) => hardState?.term)).to.include(2);
    for (const { commitHint = 0, hardState } of three.held) {
      expect(Math.max(commitHint, hardState?.commit ?? 0)).to.be.at.most(oldEnd);
    }
    three.persist();
    expect(three.core.ready().commitHint, 'once it is in force').to.equal(5);
  });

  it('entries that follow one are not applied during its installation, even if applying may run ahead of the local disk', () => {
    const { cluster, leader, three } = behind();
    cluster.passes = () => false;
    three.holdsWrites = true;
    three.core.applyAhead(true);
    expect(three.receive(leader)).to.equal(true);
    const next = { index: 6, term: 1, type: 'normal', data: bytes('e') } as const;
    const append = { from: 1, to: 3, term: 1, clusterId: 'c', session: 1, type: 'Append', round: 0 } as const;
    three.core.step({ ...append, prevIndex: 5, prevTerm: 1, entries: [next], commit: 6 }, cluster.nowMs);
    expect(three.core.status(), 'stored and committed').to.include({ lastIndex: 6, commitIndex: 6 });
    const batch = three.core.ready();
    expect(batch.snapshot?.index).to.equal(5);
    expect(batch.committed, 'the state in force does not hold what comes before it').to.deep.equal([]);
    three.carryOut(batch);
    three.persist();
    expect(three.core.ready().committed, 'once it is in force').to.deep.equal([next]);
  });

  it('a node does not campaign while it installs one', () => {
    const { cluster, leader, three } = behind();
    three.holdsWrites = true;
    three.receive(leader);
    cluster.passes = () => false;
    cluster.pass(5_000, [3]);
    expect(three.core.status().role).to.equal('follower');
  });

  it('the core decides again when the stream has ended: if the log has overtaken the snapshot, it is discarded and the tail kept', () => {
    const { cluster, leader, three } = behind();
    const late = { index: 5, term: 1, conf: confOf([1, 2, 3]), confIndex: 0 };
    const entries = leader.appliedEntries;
    const base = { from: 1, to: 3, term: 1, clusterId: 'c', session: 2, type: 'Append', round: 0 } as const;
    const log = [2, 3, 4, 5].flatMap((index) => entries.get(index) ?? []);
    three.core.step({ ...base, prevIndex: 1, prevTerm: 1, entries: log, commit: 3 }, cluster.nowMs);
    cluster.passes = () => false;
    cluster.settle();
    expect(three.core.snapshotReceived(late)).to.equal(false);
    expect(three.core.status(), 'but it shows what is committed').to.include({ commitIndex: 5, baseIndex: 0, lastIndex: 5 });
    expect(three.observed.has('snapshot held by the log')).to.equal(true);
  });

  it('an offer of a snapshot that is committed or held is answered at once, and nothing is fetched', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.core.propose(bytes('a'));
    cluster.settle();
    const two = cluster.node(2);
    const offer = { from: 1, to: 2, term: 1, clusterId: 'c', session: 1, type: 'SnapOffer' } as const;
    const meta = { index: 1, term: 1, conf: confOf([1, 2, 3]), confIndex: 0 };
    const from = cluster.sent.length;
    two.core.step({ ...offer, meta }, cluster.nowMs);
    cluster.settle();
    expect(cluster.sentOf('SnapResult', from)[0]).to.include({ ok: true, index: 2 });
    expect(two.fetches).to.deep.equal([]);
  });

  it('a failed stream starts again, and so does a stream whose offer was lost', () => {
    const { cluster, leader, three, peer } = behind();
    expect(three.receive(undefined)).to.equal(false);
    cluster.settle();
    expect(peer()?.state).to.equal('probe');
    cluster.pass(300);
    expect(three.fetches, 'offered again').to.have.length(1);
    leader.core.snapshotResult(3, false);
    expect(peer()?.state).to.equal('probe');
    cluster.pass(300);
    expect(three.fetches, 'one stream at a time').to.have.length(1);
    const from = cluster.sent.length;
    cluster.pass(1_300);
    expect(cluster.sentOf('SnapOffer', from).length, 'asked again once per election timeout').to.be.within(1, 2);
  });

  it('a leader leaves the snapshot state on any acknowledgement that its log can continue from, even below the offered index', () => {
    const { cluster, leader, three, peer } = behind();
    leader.core.propose(bytes('e'));
    cluster.settle();
    const session = cluster.sentOf('SnapOffer').at(-1)?.session ?? 0;
    const ack = { from: 3, to: 1, term: 1, clusterId: 'c', session, type: 'AppendResp', ok: true, round: 0 } as const;
    leader.core.step({ ...ack, match: 3 }, cluster.nowMs);
    expect(peer()?.state, 'below the log').to.equal('snapshot');
    leader.core.step({ ...ack, match: 4 }, cluster.nowMs);
    expect(peer()).to.include({ state: 'replicate', match: 4 });
    expect(leader.observed.has('an acknowledgement below the snapshot ended its offer')).to.equal(true);
    expect(three.core.status().lastIndex).to.equal(1);
  });

  it('a snapshot of a later term than its offer makes that term durable first', () => {
    const { cluster, three } = behind();
    const meta = { index: 9, term: 4, conf: confOf([1, 2, 3]), confIndex: 0 };
    cluster.passes = () => false;
    expect(three.core.snapshotReceived(meta)).to.equal(true);
    const batch = three.core.ready();
    expect(batch.hardState).to.include({ term: 4, vote: 0 });
    expect(batch.snapshot).to.deep.equal(meta);
  });

  it('a receiver that the snapshot’s configuration lacks does not campaign until it has the entry that adds it', () => {
    const cluster = new Cluster([1, 2]);
    const leader = cluster.elect(1);
    leader.core.propose(bytes('a'));
    cluster.settle();
    leader.compact(2);
    cluster.add(3, { conf: confOf([]) });
    leader.core.proposeConf({ kind: 'change', members: [{ id: 3, to: 'voter' }] });
    cluster.passes = ({ type }) => type !== 'AppendResp' || true;
    leader.holdsWrites = false;
    cluster.pass(300);
    const three = cluster.node(3);
    three.receive(leader);
    cluster.passes = () => false;
    cluster.settle();
    expect(three.core.status().conf.voters.includes(3)).to.equal(three.core.status().baseIndex >= 3);
    cluster.passes = () => true;
    cluster.pass(300);
    expect(three.core.status().conf.voters).to.deep.equal([1, 2, 3]);
  });

  it('describe the configuration as of their index, not the newest one', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.core.proposeConf({ kind: 'change', members: [{ id: 4, to: 'learner' }] });
    cluster.pass(300);
    expect(leader.core.snapshotMeta(1)).to.deep.include({ confIndex: 0, conf: confOf([1, 2, 3]) });
    expect(leader.core.snapshotMeta(2)).to.deep.include({ confIndex: 2 });
  });
});
