import { expect } from 'chai';
import { bytes, Cluster, confOf, TestNode } from './cluster.ts';

describe('the persistence contract', () => {
  it('hands out the hard state with, and so before, the entries of its term', () => {
    const node = new TestNode(1);
    node.core.tick(0);
    const ballot = node.core.ready();
    expect(ballot.hardState).to.include({ term: 1, vote: 1 });
    expect(ballot.entries, 'a term without entries is legal, the reverse is not').to.deep.equal([]);
  });

  it('a candidate’s request for votes waits until its term and its own vote are durable', () => {
    const cluster = new Cluster([1, 2, 3]);
    const one = cluster.node(1);
    one.holdsWrites = true;
    cluster.pass(2_000, [1]);
    expect(one.core.status().role).to.equal('candidate');
    expect(cluster.sentOf('Vote')).to.deep.equal([]);
    cluster.post(one.persist());
    expect(one.hardState).to.include({ term: 1, vote: 1 });
    expect(cluster.sentOf('Vote')).to.have.length(2);
  });

  it('a granted vote leaves after it is durable, a refusal at once', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]), terms: [1, 1] });
    const ask = { from: 1, to: 2, term: 2, clusterId: 'c', session: 0, type: 'Vote', lastIndex: 2, lastTerm: 1 } as const;
    node.core.tick(0);
    node.core.step({ ...ask, transfer: false }, 1_000);
    const granted = node.core.ready();
    expect(granted.hardState).to.include({ term: 2, vote: 1 });
    expect(granted.immediate).to.deep.equal([]);
    expect(granted.afterPersist).to.have.length(1);
    node.carryOut(granted);
    node.core.step({ ...ask, from: 3, transfer: false }, 1_001);
    const refused = node.core.ready();
    expect(refused.immediate.map((message) => 'reject' in message && message.reject)).to.deep.equal([true]);
  });

  it('a vote in a term that is already durable still waits for its own write', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]), start: { hardState: { term: 2, vote: 0, commit: 0 } } });
    node.core.tick(0);
    node.pump();
    const ask = { from: 1, to: 2, term: 2, clusterId: 'c', session: 0, type: 'Vote', lastIndex: 0, lastTerm: 0 } as const;
    node.core.step({ ...ask, transfer: false }, 1_000);
    const { immediate, afterPersist, hardState } = node.core.ready();
    expect([immediate.length, afterPersist.length]).to.deep.equal([0, 1]);
    expect(hardState).to.include({ term: 2, vote: 1 });
  });

  it('no answer leaves before the term that it carries is durable', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]) });
    node.core.tick(0);
    const beat = {
      from: 1,
      to: 2,
      term: 5,
      clusterId: 'c',
      session: 1,
      type: 'Heartbeat',
      commit: 0,
      round: 1,
      leaseMs: 150,
    } as const;
    node.core.step(beat, 10);
    const first = node.core.ready();
    expect(first.immediate).to.deep.equal([]);
    expect(first.afterPersist.map(({ type, term }) => [type, term])).to.deep.equal([['HeartbeatResp', 5]]);
    node.core.step({ ...beat, round: 2 }, 20);
    const second = node.core.ready();
    expect(second.immediate, 'the term is still under way').to.deep.equal([]);
    node.core.persisted(second.seq);
    node.core.step({ ...beat, round: 3 }, 30);
    expect(node.core.ready().immediate).to.have.length(1);
  });

  it('an acknowledgement waits for its write, a rejection does not', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    const two = cluster.node(2);
    two.holdsWrites = true;
    leader.core.propose(bytes('a'));
    cluster.settle();
    expect(leader.core.peers().find(({ id }) => id === 2)?.match).to.equal(1);
    cluster.post(two.persist());
    cluster.settle();
    expect(leader.core.peers().find(({ id }) => id === 2)?.match).to.equal(2);
  });

  it('a leader sends entries in parallel with its own write, and may learn that they are committed before its disk has them', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.holdsWrites = true;
    leader.core.propose(bytes('a'));
    cluster.settle();
    expect(leader.core.status()).to.include({ commitIndex: 2, stableIndex: 1 });
    expect(leader.applied, 'it applies only what is stable here').to.equal(1);
    expect(cluster.node(2).applied, 'the others need not wait for it').to.equal(2);
    cluster.post(leader.persist());
    cluster.settle();
    expect(leader.applied).to.equal(2);
    expect(leader.observed.has('entries committed before the local disk had them')).to.equal(true);
  });

  it('a leader counts itself only once its write is durable', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.holdsWrites = true;
    cluster.passes = ({ to }) => to !== 3;
    cluster.node(2).holdsWrites = false;
    leader.core.propose(bytes('a'));
    cluster.settle();
    expect(leader.core.status().commitIndex, 'one follower alone is no majority').to.equal(1);
    cluster.post(leader.persist());
    cluster.settle();
    expect(leader.core.status().commitIndex).to.equal(2);
  });

  it('the acknowledgement of an overwritten write does not cover the write that superseded it (ABA)', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]) });
    node.core.tick(0);
    node.holdsWrites = true;
    const entry = (index: number, term: number) => ({ index, term, type: 'normal' as const, data: bytes(`${term}`) });
    const append = { to: 2, clusterId: 'c', session: 1, type: 'Append', prevIndex: 0, prevTerm: 0, round: 0 } as const;
    node.core.step({ ...append, from: 1, term: 1, commit: 0, entries: [entry(1, 1), entry(2, 1)] }, 10);
    node.pump();
    node.core.step({ ...append, from: 3, term: 2, commit: 2, entries: [entry(1, 2), entry(2, 2)] }, 20);
    node.pump();
    node.core.persisted(1);
    expect(node.core.status()).to.include({ stableIndex: 0, commitIndex: 2 });
    expect(node.applied).to.equal(0);
    node.persist();
    node.pump();
    expect(node.applied).to.equal(2);
    expect(node.observed.has('acknowledgement of a superseded write limited')).to.equal(true);
  });

  it('entries that are superseded before they were handed out are never acknowledged', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]) });
    node.core.tick(0);
    const entry = (index: number, term: number) => ({ index, term, type: 'normal' as const, data: bytes(`${term}`) });
    const append = { to: 2, clusterId: 'c', session: 1, type: 'Append', commit: 0, prevIndex: 0, prevTerm: 0, round: 0 } as const;
    node.core.step({ ...append, from: 1, term: 1, entries: [entry(1, 1)] }, 10);
    node.core.step({ ...append, from: 1, term: 1, prevIndex: 1, prevTerm: 1, entries: [entry(2, 1), entry(3, 1)] }, 11);
    node.core.step({ ...append, from: 3, term: 2, prevIndex: 1, prevTerm: 1, entries: [entry(2, 2)] }, 12);
    const { entries, immediate, afterPersist } = node.core.ready();
    expect(entries.map(({ index, term }) => [index, term])).to.deep.equal([
      [1, 1],
      [2, 2],
    ]);
    const acknowledged = [...immediate, ...afterPersist].map((message) => [message.to, 'match' in message && message.match]);
    expect(acknowledged).to.deep.equal([
      [1, 1],
      [3, 2],
    ]);
  });

  it('a write acknowledged after a change of leader still counts, or an idle follower would never apply it', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    const three = cluster.node(3);
    three.holdsWrites = true;
    leader.core.propose(bytes('a'));
    cluster.settle();
    cluster.passes = ({ from, to }) => from !== 1 && to !== 1;
    cluster.pass(2_500, [2]);
    cluster.post(three.persist());
    cluster.settle();
    expect(three.core.status().stableIndex).to.be.at.least(2);
  });

  it('a hint of the commit index is never above what is durable', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]) });
    node.core.tick(0);
    const entries = [{ index: 1, term: 1, type: 'normal' as const, data: bytes('a') }];
    const append = { from: 1, to: 2, term: 1, clusterId: 'c', session: 1, prevIndex: 0, prevTerm: 0 } as const;
    node.core.step({ ...append, type: 'Append', commit: 1, entries, round: 0 }, 10);
    const batch = node.core.ready();
    expect([batch.commitHint, batch.hardState?.commit]).to.deep.equal([undefined, 0]);
    node.carryOut(batch);
    expect(node.core.ready().commitHint).to.equal(1);
  });

  it('after a storage failure nothing is sent, taken or handed out any longer', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.core.storageFailed();
    cluster.pass(1_000, [1]);
    expect(leader.core.hasReady()).to.equal(false);
    expect(leader.core.propose(bytes('a'))).to.deep.equal({ accepted: false, reason: 'faulty' });
  });

  it('a leader whose disk stalls steps down, and campaigns again only when the disk works again', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.core.setStalled(1_001);
    expect(leader.core.status().role).to.equal('follower');
    cluster.pass(5_000, [1]);
    expect(leader.core.status().role).to.equal('follower');
    leader.core.setStalled(0);
    cluster.elect(1);
  });

  it('a sole member whose disk stalls keeps leading for ten election timeouts, and commits when the disk works again', () => {
    const cluster = new Cluster([1]);
    const leader = cluster.elect(1);
    const { term, commitIndex } = leader.core.status();
    leader.core.setStalled(10_000);
    expect(leader.core.propose(bytes('a'))).to.include({ accepted: true });
    expect(leader.core.status()).to.include({ role: 'leader', term, commitIndex });
    leader.core.setStalled(0);
    cluster.pass(1, [1]);
    expect(leader.core.status()).to.include({ role: 'leader', term, commitIndex: commitIndex + 1 });
    leader.core.setStalled(10_001);
    expect(leader.core.status().role).to.equal('follower');
  });
});
