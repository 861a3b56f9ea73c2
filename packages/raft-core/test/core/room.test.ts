import { expect } from 'chai';
import { bytes, Cluster } from './cluster.ts';

describe('limits of memory and disk', () => {
  it('a follower without room does not answer entries, still follows, and takes them when there is room', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    const { core } = cluster.node(2);
    core.setRoom(false);
    const before = core.status().lastIndex;
    for (const name of ['a', 'b']) leader.core.propose(bytes(name));
    cluster.pass(5_000);
    expect(leader.core.status()).to.include({ role: 'leader', commitIndex: before + 2 });
    expect(core.status()).to.include({ lastIndex: before, leader: 1, role: 'follower' });
    core.setRoom(true);
    cluster.pass(500);
    expect(core.status()).to.include({ lastIndex: before + 2, commitIndex: before + 2 });
  });

  it('nothing is committed that would need a follower without room for its majority', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    const before = leader.core.status().commitIndex;
    for (const id of [2, 3]) cluster.node(id).core.setRoom(false);
    leader.core.propose(bytes('a'));
    cluster.pass(3_000);
    expect(leader.core.status()).to.include({ role: 'leader', commitIndex: before });
    cluster.node(3).core.setRoom(true);
    cluster.pass(500);
    expect(leader.core.status().commitIndex).to.equal(before + 1);
  });

  it('a follower without room still learns the commit index for the entries that it has', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    const before = leader.core.status().lastIndex;
    leader.core.propose(bytes('a'));
    cluster.passes = ({ type, to }) => to !== 2 || type !== 'Heartbeat';
    cluster.pump();
    for (const message of cluster.wire.filter(({ to }) => to === 2)) cluster.deliver(message);
    cluster.node(2).core.setRoom(false);
    leader.core.propose(bytes('b'));
    cluster.settle();
    cluster.passes = () => true;
    cluster.pass(1_000);
    expect(cluster.node(2).core.status()).to.include({ lastIndex: before + 1, commitIndex: before + 1 });
  });

  it('a leader without room takes no proposals, but opens its term', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.node(1).core.setRoom(false);
    const leader = cluster.elect(1);
    expect(leader.core.status().commitIndex).to.equal(1);
    expect(leader.core.propose(bytes('a'))).to.deep.equal({ accepted: false, reason: 'busy' });
    leader.core.setRoom(true);
    expect(leader.core.propose(bytes('a'))).to.include({ accepted: true });
  });

  it('a node holds at most its memory limit plus one message', () => {
    const cluster = new Cluster([1, 2, 3], {}, { 2: { limits: { memoryBytesMax: 50 } } });
    const leader = cluster.elect(1);
    const three = cluster.node(2);
    // A node whose state machine never reports a flush.
    three.core.applied = () => undefined;
    for (let i = 0; i < 40; i++) {
      leader.core.propose(bytes('0123456789'));
      cluster.settle();
    }
    cluster.pass(2_000);
    expect(three.core.status().lastIndex).to.be.within(6, 8);
    expect(leader.core.status().commitIndex).to.equal(41);
  });
});
