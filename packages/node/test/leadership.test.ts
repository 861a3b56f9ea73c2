import { MemberEvents } from '@transitd/cluster';
import { type NodeObserver, noObserver } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { expect } from 'chai';
import { pino } from 'pino';
import { TestClock } from '../../process/test/test-clock.ts';
import { Leadership } from '../src/leadership.ts';

type Change = Pick<DriverStatus, 'role' | 'ready' | 'term' | 'leader'>;

/** The leadership of a member whose status changes as a test says. */
function followed(observer: NodeObserver = noObserver) {
  const [events, clock] = [new MemberEvents(), new TestClock()];
  const names = { member: () => undefined };
  const leadership = new Leadership({ log: pino({ level: 'silent' }), observer }, events, names, clock);
  const becomes = (change: Partial<Change>): void =>
    events.emit('status', {
      ...{ nodeId: 1, role: 'follower', term: 1, leader: 1, ready: false },
      ...{ lastIndex: 1, commitIndex: 1, transferTo: undefined },
      ...change,
    } as unknown as DriverStatus);
  return { leadership, clock, becomes };
}

describe('the leadership of a member', () => {
  it('is reported by each change of the role, once, and by how long a leadership lasted', () => {
    const reports: unknown[] = [];
    const { clock, becomes } = followed({
      ...noObserver,
      roleChanged: (role) => void reports.push(role),
      leadershipLost: (ms) => void reports.push(ms),
    });
    for (const [atMs, role, ready] of [
      [0, 'follower', false],
      [10, 'precandidate', false],
      [20, 'candidate', false],
      [30, 'leader', false],
      [40, 'leader', true],
      [50, 'leader', true],
      [90, 'follower', false],
      [95, 'faulty', false],
    ] as const) {
      clock.ms = atMs;
      becomes({ role, ready });
    }
    expect(reports).to.deep.equal(['follower', 'candidate', 'leader', 'follower', 50]);
  });

  it('has one change for each term with a leader, with the time when this node learned of it', () => {
    const { leadership, clock, becomes } = followed();
    for (const [term, leader] of [
      [1, 0],
      [1, 1],
      [1, 0], // silent for a while
      [1, 1],
      [2, 0],
      [3, 2],
    ] as const) {
      clock.ms += 10;
      becomes({ term, leader });
    }
    expect(leadership.changes).to.deep.equal([
      { term: 1, leader: 1, utcMs: 1_000_020 },
      { term: 3, leader: 2, utcMs: 1_000_060 },
    ]);
  });

  it('keeps the newest 32 changes', () => {
    const { leadership, becomes } = followed();
    for (let term = 1; term <= 100; term++) becomes({ term });
    expect(leadership.changes.map(({ term }) => term)).to.deep.equal(Array.from({ length: 32 }, (_, n) => n + 69));
  });

  it('began just now if the node leads and its engine has not reported that yet, and when it was reported afterwards', () => {
    const { leadership, clock, becomes } = followed();
    expect(leadership.activeSince.getTime()).to.equal(clock.utcMs());
    const reportedMs = clock.utcMs();
    becomes({ role: 'leader', ready: true });
    clock.ms += 1000;
    expect(leadership.activeSince.getTime()).to.equal(reportedMs);
  });
});
