import { expect } from 'chai';
import type { Message } from '../../../src/types.ts';
import { bytes, Cluster, confOf } from '../cluster.ts';

describe('ReadIndex', () => {
  it('returns the commit index at its arrival after a quorum has answered a round that began after it', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.core.readIndex(7);
    cluster.pump();
    expect(leader.reads).to.deep.equal([]);
    leader.core.propose(bytes('later'));
    cluster.settle();
    expect(leader.reads).to.deep.equal([{ ctx: 7, index: 1 }]);
  });

  it('an answer to an earlier round confirms nothing, however late it arrives', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    const old = cluster.sentOf('HeartbeatResp');
    cluster.passes = () => false;
    leader.core.readIndex(7);
    cluster.settle();
    for (const message of old) cluster.deliver(message);
    cluster.settle();
    expect(leader.reads).to.deep.equal([]);
  });

  it('the next heartbeat makes up for a lost round, since an answer counts for all earlier rounds', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.passes = () => false;
    leader.core.readIndex(7);
    cluster.settle();
    cluster.passes = () => true;
    cluster.pass(200, [1]);
    expect(leader.reads).to.deep.equal([{ ctx: 7, index: 1 }]);
  });

  it('any number of waiting reads share one round, with at most one more round after it', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    const from = cluster.sent.length;
    leader.core.readIndex(0);
    cluster.pump();
    for (let ctx = 1; ctx <= 50; ctx++) leader.core.readIndex(ctx);
    cluster.settle();
    expect(leader.reads).to.have.length(51);
    expect(cluster.sentOf('Heartbeat', from).filter(({ to }) => to === 2)).to.have.length(2);
    expect(leader.observed.has('several reads shared a round')).to.equal(true);
  });

  it('refuses the reads of one node above a limit, which others do not feel, until its earlier ones are answered', () => {
    const cluster = new Cluster([1, 2, 3], { limits: { forwardedReadsMax: 3 } });
    const leader = cluster.elect(1);
    const { term, clusterId } = cluster.sentOf('Heartbeat')[0] as Message;
    cluster.passes = ({ type }) => type !== 'HeartbeatResp';
    const send = (from: number, ids: readonly number[]): void => {
      const requests = ids.map((id) => ({ id, incarnation: 1 }));
      cluster.deliver({ type: 'ReadIndex', from, to: 1, term, clusterId, session: 0, requests });
      cluster.settle();
    };
    const answered = (to: number, ok: boolean): readonly number[] =>
      cluster
        .sentOf('ReadIndexResp')
        .filter((one) => one.to === to && one.ok === ok)
        .flatMap(({ requests }) => requests.map(({ id }) => id));
    send(2, [1, 2]);
    send(2, [3, 4, 5]);
    send(3, [1, 2, 3]);
    expect(answered(2, false)).to.deep.equal([4, 5]);
    expect(answered(3, false)).to.deep.equal([]);
    cluster.passes = () => true;
    cluster.pass(400, [1]);
    expect(answered(2, true)).to.deep.equal([1, 2, 3]);
    send(2, [6, 7, 8]);
    expect(answered(2, true)).to.deep.equal([1, 2, 3, 6, 7, 8]);
    expect(leader.core.status().role).to.equal('leader');
  });

  it('a new leader waits until an entry of its own term is committed', () => {
    const cluster = new Cluster([1, 2, 3], {}, { 1: { terms: [1] }, 2: { terms: [1] } });
    cluster.passes = ({ type }) => type !== 'AppendResp';
    const leader = cluster.elect(1);
    leader.core.readIndex(7);
    cluster.pass(300);
    expect(leader.reads).to.deep.equal([]);
    cluster.passes = () => true;
    cluster.pass(300);
    expect(leader.reads).to.deep.equal([{ ctx: 7, index: 2 }]);
  });

  it('counts the quorum of the configuration in force at that time', () => {
    const cluster = new Cluster([1, 2, 3], { conf: confOf([1, 2, 3], { votersOutgoing: [1, 4, 5], autoLeave: false }) });
    for (const id of [4, 5]) cluster.add(id, { conf: confOf([]) });
    const leader = cluster.node(1);
    cluster.nowMs = 2_000;
    for (const id of [4, 5]) cluster.node(id).core.tick(0);
    cluster.elect(1);
    cluster.passes = ({ from, to }) => from < 4 && to < 4;
    leader.core.readIndex(7);
    cluster.settle();
    expect(leader.reads, 'one half is not enough').to.deep.equal([]);
    cluster.passes = () => true;
    cluster.pass(200);
    expect(leader.reads).to.have.length(1);
  });

  it('reads are dropped when the role changes', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.passes = () => false;
    leader.core.readIndex(7);
    cluster.pass(1_500, [1]);
    expect(leader.droppedReads).to.deep.equal([7]);
  });

  it('a follower asks its leader, and uses the answer for its own state', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.core.propose(bytes('a'));
    cluster.settle();
    cluster.node(3).core.readIndex(9);
    cluster.settle();
    expect(cluster.node(3).reads).to.deep.equal([{ ctx: 9, index: 2 }]);
  });

  it('a follower without a leader refuses a read, and drops a read whose leader changes or does not answer', () => {
    const cluster = new Cluster([1, 2, 3]);
    const three = cluster.node(3);
    expect(three.core.readIndex(1)).to.equal('notLeader');
    cluster.elect(1);
    cluster.passes = () => false;
    three.core.readIndex(2);
    cluster.pass(950, [3]);
    expect(three.droppedReads).to.deep.equal([]);
    cluster.pass(100, [3]);
    expect(three.droppedReads).to.deep.equal([2]);
    cluster.passes = () => true;
    cluster.elect(2);
    three.core.readIndex(3);
    cluster.passes = ({ type }) => type !== 'ReadIndex';
    cluster.settle();
    three.core.step(
      { from: 9, to: 3, term: 99, clusterId: 'c', session: 1, type: 'Heartbeat', commit: 0, round: 1, leaseMs: 150 },
      cluster.nowMs,
    );
    cluster.settle();
    expect(three.droppedReads).to.deep.equal([2, 3]);
  });

  it('an answer of another node than the leader confirms nothing, and drops nothing', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.elect(1);
    const three = cluster.node(3);
    cluster.passes = ({ type }) => type !== 'ReadIndex';
    three.core.readIndex(1);
    cluster.settle();
    const [asked] = cluster.sentOf('ReadIndex');
    if (asked === undefined) throw new Error('nothing was asked');
    for (const ok of [true, false]) {
      cluster.deliver({ ...asked, type: 'ReadIndexResp', from: 2, to: 3, index: 0, ok });
      cluster.settle();
    }
    expect([three.reads, three.droppedReads]).to.deep.equal([[], []]);
    cluster.deliver({ ...asked, type: 'ReadIndexResp', from: 1, to: 3, index: 1, ok: true });
    cluster.settle();
    expect(three.reads).to.deep.equal([{ ctx: 1, index: 1 }]);
  });

  it('a late answer to an earlier incarnation of the asker confirms nothing', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.elect(1);
    const three = cluster.node(3);
    three.core.readIndex(1);
    cluster.settle();
    const late = cluster.sentOf('ReadIndexResp').filter(({ to }) => to === 3);
    expect(late).to.have.length(1);
    three.restart();
    three.reads.length = 0;
    cluster.pass(200);
    cluster.passes = () => false;
    three.core.readIndex(1);
    for (const message of late) cluster.deliver(message);
    cluster.settle();
    expect(three.reads).to.deep.equal([]);
    expect(three.observed.has('late read answer ignored')).to.equal(true);
  });
});

describe('lease reads', () => {
  it('hold for 0.8 election timeouts from the send time of a round that a quorum answered', () => {
    const cluster = new Cluster([1, 2, 3]);
    const { core } = cluster.elect(1);
    cluster.pass(200, [1]);
    const sentAtMs = cluster.nowMs - ((cluster.nowMs - 50) % 150 === 0 ? 50 : 0);
    const valid = (nowMs: number) => core.leaseRead(nowMs) !== undefined;
    expect(core.leaseRead(cluster.nowMs)).to.equal(1);
    expect(valid(sentAtMs - 150 + 800 - 1)).to.equal(true);
    expect(valid(sentAtMs + 800)).to.equal(false);
  });

  it('count from the sending of the round, not from the arrival of its answer', () => {
    const cluster = new Cluster([1, 2, 3]);
    const { core } = cluster.elect(1);
    cluster.passes = ({ type }) => type !== 'HeartbeatResp' && type !== 'AppendResp';
    cluster.pass(600, [1]);
    const answers = cluster.sentOf('HeartbeatResp').slice(-8);
    const first = answers[0];
    expect(first).not.to.equal(undefined);
    cluster.passes = () => true;
    if (first !== undefined) cluster.deliver(first);
    expect(core.leaseRead(cluster.nowMs + 400), 'an answer of half a second ago').to.equal(undefined);
  });

  it('are refused before an entry of the leader’s own term is committed', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.passes = ({ type }) => type !== 'AppendResp';
    const { core } = cluster.elect(1);
    cluster.pass(200);
    expect(core.leaseRead(cluster.nowMs)).to.equal(undefined);
  });

  it('end for the rest of the term when TimeoutNow is sent, while ReadIndex continues', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.pass(300);
    cluster.passes = ({ type }) => type !== 'TimeoutNow';
    expect(leader.core.transferLeadership(2)).to.equal(undefined);
    cluster.pass(1_200);
    expect(leader.core.status()).to.include({ role: 'leader' });
    expect(leader.core.status().transferTo, 'given up').to.equal(undefined);
    expect(leader.core.leaseRead(cluster.nowMs), 'the order may still arrive').to.equal(undefined);
    leader.core.readIndex(1);
    cluster.settle();
    expect(leader.reads).to.have.length(1);
  });

  it('need both halves of a joint configuration', () => {
    const conf = confOf([1, 2, 3], { votersOutgoing: [1, 4, 5], autoLeave: false });
    const cluster = new Cluster([1, 2, 3, 4, 5], { conf });
    const { core } = cluster.elect(1);
    cluster.pass(300);
    expect(core.leaseRead(cluster.nowMs)).not.to.equal(undefined);
    cluster.passes = ({ from, to }) => from < 4 && to < 4;
    cluster.pass(900);
    expect(core.leaseRead(cluster.nowMs)).to.equal(undefined);
  });

  it('always hold for a sole voter once it has committed; never on followers or with leases off', () => {
    const alone = new Cluster([1]);
    alone.pass(50);
    expect(alone.node(1).core.leaseRead(1_000_000)).to.equal(1);
    const off = new Cluster([1], { limits: { leaseMs: 0 } });
    off.pass(50);
    expect(off.node(1).core.leaseRead(off.nowMs)).to.equal(undefined);
    const cluster = new Cluster([1, 2, 3]);
    cluster.elect(1);
    expect(cluster.node(2).core.leaseRead(cluster.nowMs)).to.equal(undefined);
  });

  it('must end before the promises that back them: other limits are refused', () => {
    expect(() => new Cluster([1], { limits: { leaseMs: 900 } })).to.throw(/lease/);
  });
});

describe('leadership transfer', () => {
  it('stops proposals, lets the target catch up, and gets it elected without a pre-vote or a timeout', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.pass(300);
    cluster.passes = ({ to, type }) => to !== 2 || type !== 'Append';
    leader.core.propose(bytes('a'));
    cluster.settle();
    expect(leader.core.transferLeadership(2)).to.equal(undefined);
    expect(leader.core.propose(bytes('b'))).to.deep.equal({ accepted: false, reason: 'transferring' });
    cluster.settle();
    expect(cluster.sentOf('TimeoutNow'), 'not before it has everything').to.deep.equal([]);
    cluster.passes = () => true;
    const from = cluster.sent.length;
    cluster.pass(300, [1]);
    expect(cluster.leaders()).to.deep.equal([2]);
    expect(cluster.sentOf('PreVote', from)).to.deep.equal([]);
    expect(cluster.sentOf('Vote', from).every(({ transfer }) => transfer)).to.equal(true);
    const byTransfer = () => [1, 2, 3].map((id) => cluster.node(id).core.status().byTransfer);
    expect(byTransfer(), 'every voter knows why the term began').to.deep.equal([true, true, true]);
    cluster.passes = ({ to, from }) => to !== 2 && from !== 2;
    cluster.passUntil(() => cluster.leaders().some((id) => id !== 2), [1, 3]);
    expect(byTransfer(), 'the next term began with an election').to.deep.equal([false, true, false]);
  });

  it('a target with a different last entry, that is not a voter, or that another node than the leader told, does not campaign', () => {
    const cluster = new Cluster([1, 2, 3, 4], { conf: confOf([1, 2, 3], { learners: [4] }) });
    cluster.elect(1);
    for (const { from, to, lastIndex, term } of [
      { from: 1, to: 2, lastIndex: 2, term: 1 },
      { from: 1, to: 4, lastIndex: 1, term: 1 },
      { from: 3, to: 2, lastIndex: 1, term: 1 },
      { from: 3, to: 2, lastIndex: 1, term: 2 },
    ]) {
      const order: Message = { from, to, term, clusterId: 'c', session: 1, type: 'TimeoutNow', lastIndex, lastTerm: 1 };
      cluster.deliver(order);
      expect(cluster.node(to).core.status().role).to.equal('follower');
    }
  });

  it('the permission to ignore a leader heard recently is for one attempt', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.pass(300);
    cluster.passes = ({ type }) => type !== 'Vote';
    leader.core.transferLeadership(2);
    cluster.settle();
    expect(cluster.node(2).core.status().role).to.equal('candidate');
    const from = cluster.sent.length;
    cluster.pass(2_500, [2]);
    expect(cluster.sentOf('PreVote', from).length).to.be.above(0);
    expect(cluster.sentOf('Vote', from).some(({ transfer }) => transfer)).to.equal(false);
  });

  it('is aborted after an election timeout, and when the target loses its vote', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.pass(300);
    cluster.passes = ({ to }) => to !== 2;
    leader.core.propose(bytes('a'));
    expect(leader.core.transferLeadership(2)).to.equal(undefined);
    expect(leader.core.transferLeadership(3)).to.equal('transferring');
    cluster.pass(950);
    expect(leader.core.status().transferTo).to.equal(2);
    cluster.pass(100);
    expect(leader.core.status().transferTo).to.equal(undefined);
    expect(leader.core.propose(bytes('b'))).to.include({ accepted: true });
  });

  it('goes to the fit voter with the longest log unless a target is named', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.pass(300);
    cluster.passes = ({ to, type }) => to !== 2 || type !== 'Append';
    leader.core.propose(bytes('a'));
    cluster.settle();
    expect(leader.core.transferLeadership(undefined)).to.equal(undefined);
    expect(leader.core.status().transferTo ?? cluster.leaders()[0]).to.equal(3);
    expect(cluster.node(2).core.transferLeadership(undefined)).to.equal('notLeader');
  });
});
