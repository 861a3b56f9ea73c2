import { expect } from 'chai';
import { bytes } from '../../../raft-core/test/core/cluster.ts';
import { readyNode } from './observed.ts';
import { type Member, Trio, writtenBy } from './trio.ts';

/** Three nodes, with the end of the lease that each driver has reported last. */
function trioWithReports() {
  const ends = new Map<number, number | undefined>();
  const trio = new Trio({ ids: [] });
  for (const id of [1, 2, 3]) trio.start(id, [1, 2, 3], { onLease: (endMs) => void ends.set(id, endMs) });
  const mayRead = ({ id }: Member): boolean => trio.clock.now() < (ends.get(id) ?? Number.NEGATIVE_INFINITY);
  return { trio, ends, mayRead };
}

describe('The lease that the driver reports to other threads', () => {
  it('is held only by the leader, and lasts as long as its quorum answers', () => {
    const { trio, mayRead } = trioWithReports();
    const leader = trio.leader();
    trio.clock.runFor(2_000);
    expect(mayRead(leader)).to.equal(true);
    expect(trio.others(leader).map(mayRead)).to.deep.equal([false, false]);
    trio.passes = () => false;
    trio.clock.runFor(960);
    expect(mayRead(leader)).to.equal(false);
  });

  it('ends before a message shows a peer a commit index that is not applied here', () => {
    const { trio, mayRead } = trioWithReports();
    const leader = trio.leader();
    trio.clock.runFor(300);
    let shown = 0;
    trio.passes = (message) => {
      if (message.from !== leader.id || !('commit' in message)) return true;
      const isAhead = message.commit > leader.driver.status().appliedIndex;
      if (isAhead) shown += 1;
      expect(isAhead && mayRead(leader), `commit ${message.commit}`).to.equal(false);
      return true;
    };
    const outcomes: string[] = [];
    for (let i = 0; i < 200; i++) leader.driver.propose(bytes(`w${i}`), ({ kind }) => outcomes.push(kind));
    trio.clock.runUntil(() => outcomes.length === 200);
    expect(writtenBy(leader)).to.have.length(200);
    expect(shown, 'messages that were ahead of the applied state').to.be.above(0);
    trio.clock.runFor(300);
    expect(mayRead(leader), 'the lease returns').to.equal(true);
  });

  it('ends before the message that lets another node campaign', () => {
    const { trio, mayRead } = trioWithReports();
    const leader = trio.leader();
    trio.clock.runFor(300);
    expect(mayRead(leader)).to.equal(true);
    const seen: boolean[] = [];
    trio.passes = ({ type }) => {
      if (type === 'TimeoutNow') seen.push(mayRead(leader));
      return true;
    };
    leader.driver.transfer(undefined, () => undefined);
    trio.clock.runUntil(() => seen.length > 0);
    expect(seen).to.deep.equal([false]);
  });

  it('is reported for an applied entry before a peer learns that the entry is applied', () => {
    const trio = new Trio({ ids: [] });
    const reportedAt = new Map<number, number>();
    for (const id of [1, 2, 3])
      trio.start(id, [1, 2, 3], {
        onLease: () => void reportedAt.set(id, trio.members.get(id)?.driver.status().appliedIndex ?? 0),
      });
    const leader = trio.leader();
    trio.clock.runFor(300);
    const confirmed: string[] = [];
    trio.passes = (message) => {
      if (message.type !== 'ConfirmResp') return true;
      const { from, index } = message;
      confirmed.push((reportedAt.get(from) ?? 0) >= index ? 'reported' : `reported at ${reportedAt.get(from)}, not at ${index}`);
      return true;
    };
    for (const { id } of trio.others(leader)) leader.driver.confirm(id, leader.driver.status().lastIndex + 1, () => undefined);
    leader.driver.propose(bytes('a'), () => undefined);
    trio.clock.runUntil(() => confirmed.length === 2);
    expect(confirmed).to.deep.equal(['reported', 'reported']);
  });

  it('ends when the leader is sealed', () => {
    const { trio, mayRead } = trioWithReports();
    const leader = trio.leader();
    trio.clock.runFor(300);
    leader.driver.setFitness('sealed');
    trio.clock.runFor(1);
    expect(mayRead(leader)).to.equal(false);
  });

  it('ends at once when the driver stops', () => {
    const { trio, mayRead } = trioWithReports();
    const leader = trio.leader();
    trio.clock.runFor(300);
    expect(mayRead(leader)).to.equal(true);
    leader.driver.stop(() => undefined);
    expect(mayRead(leader)).to.equal(false);
  });

  it('ends when the log fails', () => {
    const ends: (number | undefined)[] = [];
    const { clock, run, seen } = readyNode({ driver: { onLease: (endMs) => void ends.push(endMs) } });
    expect(ends.at(-1)).to.be.above(clock.now());
    run.log.failNext('write', new Error('EIO'));
    seen.propose(run, 'a');
    clock.runUntil(() => run.fatal.length > 0);
    expect(ends.at(-1)).to.equal(undefined);
  });

  it('is held by a sole member without a pause while it writes', () => {
    const ends: (number | undefined)[] = [];
    const { clock, run, seen } = readyNode({ driver: { onLease: (endMs) => void ends.push(endMs) } });
    const from = ends.length;
    for (let i = 0; i < 50; i++) seen.propose(run, `w${i}`);
    clock.runUntil(() => seen.proposals.length === 50);
    expect(ends.length).to.be.above(from);
    expect(ends.slice(from)).not.to.include(undefined);
  });
});
