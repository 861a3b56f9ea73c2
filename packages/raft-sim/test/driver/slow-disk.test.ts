import { expect } from 'chai';
import { bytes } from '../../../raft-core/test/core/cluster.ts';
import { type Member, Trio, writtenBy } from './trio.ts';

/** Three nodes, some with a disk that takes `logMs` for every write to the log once `slow` is set. */
function trioWith({ logMs }: { readonly logMs: number }) {
  const slow = new Set<number>();
  const trio = new Trio({ logDelayMs: (id) => (slow.has(id) ? logMs : 1) });
  return { trio, slow };
}

/** Returns how long the leader takes to answer a write, in ms. */
function writeMs(trio: Trio, leader: Member, name: string): number {
  const fromMs = trio.clock.now();
  let kind = '';
  leader.driver.propose(bytes(name), (outcome) => {
    kind = outcome.kind;
  });
  trio.clock.runUntil(() => kind !== '');
  expect(kind).to.equal('applied');
  return trio.clock.now() - fromMs;
}

describe('Driver, when only this node’s disk is slow', () => {
  it('a leader answers writes that are on a quorum’s disks, without waiting for its own', () => {
    const { trio, slow } = trioWith({ logMs: 600 });
    const leader = trio.leader();
    slow.add(leader.id);
    const tookMs = Array.from({ length: 10 }, (_, i) => writeMs(trio, leader, `w${i}`));
    expect(Math.max(...tookMs), tookMs.join()).to.be.below(200);
    expect(leader.driver.status().role).to.equal('leader');
  });

  it('a follower applies what the leader has committed, without waiting for its own disk', () => {
    const { trio, slow } = trioWith({ logMs: 600 });
    const leader = trio.leader();
    const [follower] = trio.others(leader);
    if (follower === undefined) throw new Error('no follower');
    slow.add(follower.id);
    for (let i = 0; i < 5; i++) {
      writeMs(trio, leader, `w${i}`);
      const { lastIndex } = leader.driver.status();
      const fromMs = trio.clock.now();
      trio.clock.runUntil(() => follower.driver.status().appliedIndex >= lastIndex);
      expect(trio.clock.now() - fromMs).to.be.below(300);
    }
  });

  it('reports for how long a write has hung, and nothing once it is done', () => {
    const { trio, slow } = trioWith({ logMs: 600 });
    const leader = trio.leader();
    trio.clock.runUntil(() => leader.driver.diskStalledMs === 0);
    slow.add(leader.id);
    writeMs(trio, leader, 'w');
    trio.clock.runUntil(() => leader.driver.diskStalledMs > 500);
    trio.clock.runUntil(() => leader.driver.diskStalledMs === 0);
    expect(leader.driver.consensus().stableIndex).to.equal(leader.driver.status().lastIndex);
  });

  it('never flushes its state ahead of its stable log, and still flushes while writes continue', () => {
    const { trio, slow } = trioWith({ logMs: 600 });
    const leader = trio.leader();
    slow.add(leader.id);
    let aheadOnce = false;
    for (let i = 0; i < 60; i++) {
      writeMs(trio, leader, `w${i}`);
      const { appliedIndex, flushedIndex } = leader.driver.status();
      const { stableIndex } = leader.driver.consensus();
      aheadOnce ||= appliedIndex > stableIndex;
      expect(leader.state.flushed.length, 'on the state’s disk').to.be.at.most(stableIndex);
      expect(flushedIndex).to.be.at.most(stableIndex);
    }
    expect(aheadOnce).to.equal(true);
    slow.clear();
    const { lastIndex } = leader.driver.status();
    trio.clock.runUntil(() => leader.driver.status().flushedIndex >= lastIndex);
  });

  it('catches up with its flush when every write is slow: it stops applying ahead once too much is unflushed', () => {
    const trio = new Trio({ logDelayMs: () => 300, driver: { limits: { unflushedBytesMax: 8_000 } } });
    const leader = trio.leader();
    const before = leader.driver.status().flushedIndex;
    let answered = 0;
    for (let i = 0; i < 200; i++) {
      trio.clock.after(i * 20, () => leader.driver.propose(new Uint8Array(100), () => (answered += 1)));
    }
    trio.clock.runUntil(() => answered >= 150);
    expect(leader.driver.status().flushedIndex, 'while writes go on').to.be.above(before + 50);
  });

  it('loses nothing when it crashes while it is ahead: it restarts from its log and receives the rest again', () => {
    const { trio, slow } = trioWith({ logMs: 100_000 });
    const leader = trio.leader();
    const [follower] = trio.others(leader);
    if (follower === undefined) throw new Error('no follower');
    slow.add(follower.id);
    for (const name of ['a', 'b', 'c']) writeMs(trio, leader, name);
    trio.clock.runUntil(() => writtenBy(follower).includes('c'));
    expect(follower.driver.consensus().stableIndex).to.be.below(follower.driver.status().appliedIndex);
    trio.crash(follower.id);
    slow.clear();
    const again = trio.start(follower.id, [1, 2, 3]);
    expect(writtenBy(again)).not.to.include('c');
    trio.clock.runUntil(() => writtenBy(again).includes('c'));
    expect(again.fatal).to.deep.equal([]);
  });
});
