import { expect } from 'chai';
import type { Message } from '../../src/types.ts';
import { bytes, Cluster } from './cluster.ts';

/**
 * Node 1 leads twice. Returns its heartbeats to node 2 of the first time, still under way. Sessions and rounds count from 1 in each
 * term, so an answer to one of these heartbeats looks like an answer of the second time.
 */
function leadsTwice(leaseMs: number) {
  const cluster = new Cluster([1, 2, 3], { limits: { leaseMs, heartbeatMs: 150, electionJitterMs: 100 } });
  const [leader, follower, successor] = [cluster.elect(1), cluster.node(2), cluster.node(3)];
  const underWay: Message[] = [];
  cluster.passes = (message) => {
    const isDelayed = message.type === 'Heartbeat' && message.from === 1 && message.to === 2;
    if (isDelayed) underWay.push(message);
    return !isDelayed;
  };
  cluster.pass(3_000); // node 3 answers
  cluster.passes = ({ from, to }) => from !== 1 && to !== 1;
  cluster.passUntil(() => leader.core.status().role !== 'leader', [1]);
  cluster.passes = () => true;
  cluster.elect(1);
  cluster.settle();
  const { term } = leader.core.status();
  expect(underWay.every((message) => message.term < term)).to.equal(true);
  /** Node 3 is elected by node 2 and commits, unknown to node 1. */
  const succeed = (): void => {
    cluster.passUntil(() => successor.core.status().role === 'leader', [3]);
    successor.core.propose(bytes('revoked'));
    cluster.settle();
    cluster.pass(50, [3]);
    expect(successor.texts()).to.include('revoked');
  };
  return { cluster, leader, follower, underWay, succeed };
}

describe('an answer to a message of an earlier term of the same leader', () => {
  it('backs no lease of its present term', () => {
    const { cluster, leader, underWay, succeed } = leadsTwice(800);
    const heardAt = cluster.nowMs;
    cluster.passes = ({ from, to }) => from !== 1 && !(from === 3 && to === 1);
    while (cluster.nowMs < heardAt + 950) cluster.pass(50, [1]);
    expect(leader.core.leaseRead(cluster.nowMs), 'nobody answers').to.equal(undefined);
    for (const message of underWay) cluster.deliver(message);
    cluster.settle();
    succeed();
    leader.core.tick(cluster.nowMs);
    expect(leader.core.leaseRead(cluster.nowMs)).to.equal(undefined);
  });

  it('confirms no ReadIndex of its present term', () => {
    const { cluster, leader, underWay, succeed } = leadsTwice(0);
    const heardAt = cluster.nowMs;
    const answers: Message[] = [];
    cluster.passes = (message) => {
      if (message.from === 2 && message.to === 1) answers.push(message);
      return message.from !== 1 && message.to !== 1;
    };
    while (cluster.nowMs < heardAt + 900) cluster.pass(50, [1]);
    answers.length = 0;
    for (const message of underWay) cluster.deliver(message);
    cluster.settle();
    const [first, ...later] = answers.splice(0);
    expect(later).to.have.length.above(1);
    if (first !== undefined) leader.core.step(first, cluster.nowMs);
    succeed();
    leader.core.tick(cluster.nowMs);
    leader.core.readIndex(7);
    leader.pump();
    for (const message of later) leader.core.step(message, cluster.nowMs);
    leader.pump();
    expect(leader.reads).to.deep.equal([]);
  });

  it('still tells the leader of an earlier term that there is a later one', () => {
    const { cluster, leader, underWay } = leadsTwice(0);
    cluster.passes = ({ from, to }) => from !== 1 && to !== 1;
    cluster.elect(3);
    cluster.passes = ({ from, to }) => from === 2 && to === 1;
    const [message] = underWay;
    if (message !== undefined) cluster.deliver(message);
    cluster.settle();
    expect(leader.core.status()).to.include({ role: 'follower', term: cluster.node(3).core.status().term });
  });
});
