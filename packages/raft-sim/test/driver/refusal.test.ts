import { type CoverageEvent, driverLimits, outlasting } from '@transitd/raft-core';
import { expect } from 'chai';
import { type Member, Trio } from './trio.ts';

const timing = { heartbeatMs: 50, leaseMs: 150, tickMs: 20, electionMs: 10_000, electionJitterMs: 10_000 };

/** Three drivers with a leader that has led for longer than the time in which its followers, just started, give no vote. */
function withLeader() {
  const observed: CoverageEvent[] = [];
  const limits = { ...driverLimits, ...timing };
  const trio = new Trio({ driver: { limits, observe: (event) => observed.push(event) } });
  const leader = trio.leader();
  trio.clock.runFor(timing.electionMs);
  return { trio, leader, observed };
}

describe('Driver, told that its leader refuses connections', () => {
  it('has another leader long before the election timeout', () => {
    const { trio, leader, observed } = withLeader();
    trio.crash(leader.id);
    trio.members.delete(leader.id);
    for (const { receiver } of trio.members.values()) receiver?.refused(leader.id);
    trio.clock.runFor(timing.electionMs / 4);
    expect([...trio.members.values()].filter(({ driver }) => driver.status().ready)).to.have.length(1);
    expect(observed).to.include('vote given early');
  });

  it('campaigns as soon as the lease of that leader has ended, not at the next tick', () => {
    for (let later = 0; later < timing.tickMs; later += 3) {
      const { trio, leader } = withLeader();
      let heardMs = 0;
      trio.passes = ({ type }) => {
        if (type === 'Heartbeat') heardMs = trio.clock.now() + 1;
        return true;
      };
      trio.clock.runFor(timing.heartbeatMs + later);
      trio.crash(leader.id);
      trio.members.delete(leader.id);
      trio.sent.length = 0;
      for (const { receiver } of trio.members.values()) receiver?.refused(leader.id);
      trio.clock.runUntil(() => trio.sent.some(({ type }) => type === 'PreVote'));
      expect(trio.clock.now() - heardMs).to.be.within(outlasting(timing.leaseMs) + 5, outlasting(timing.leaseMs) + 7);
    }
  });

  it('takes messages and refusals in the order of their arrival: a leader heard afterwards is not suspected', () => {
    for (const order of ['refused first', 'heard first'] as const) {
      const { trio, leader, observed } = withLeader();
      const [follower] = trio.others(leader);
      const heard = trio.sent.findLast(({ type, to }) => type === 'Heartbeat' && to === follower?.id);
      if (follower === undefined || heard === undefined) throw new Error('no follower, or no heartbeat to it');
      trio.passes = () => false;
      trio.clock.runFor(5);
      const refuse = (): void => follower.receiver?.refused(leader.id);
      const hear = (): void => follower.receiver?.message(heard);
      for (const task of order === 'refused first' ? [refuse, hear] : [hear, refuse]) task();
      trio.clock.runFor(timing.leaseMs * 2);
      expect(observed.filter((event) => event === 'leader suspected')).to.have.length(1);
      const asked = roleOf(follower) !== 'follower';
      expect(asked, order).to.equal(order === 'heard first');
    }
  });
});

const roleOf = ({ driver }: Member): string => driver.status().role;
