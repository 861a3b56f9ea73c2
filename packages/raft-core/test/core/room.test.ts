import { expect } from 'chai';
import { bytes, Cluster } from './cluster.ts';

describe('room for entries', () => {
  it('a follower without room leaves entries unanswered, follows on, and takes them when there is room', () => {
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

  it('nothing is committed that only a follower without room would make a majority for', () => {
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

  it('a follower without room learns what is committed of the entries that it has', () => {
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

  it('a leader without room takes no proposals, and opens its term all the same', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.node(1).core.setRoom(false);
    const leader = cluster.elect(1);
    expect(leader.core.status().commitIndex).to.equal(1);
    expect(leader.core.propose(bytes('a'))).to.deep.equal({ accepted: false, reason: 'busy' });
    leader.core.setRoom(true);
    expect(leader.core.propose(bytes('a'))).to.include({ accepted: true });
  });

  it('a node holds no more in memory than its limit, and one message', () => {
    const cluster = new Cluster([1, 2, 3], {}, { 2: { limits: { memoryBytesMax: 50 } } });
    const leader = cluster.elect(1);
    const three = cluster.node(2);
    // Its state machine never says that anything is on its disk.
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
