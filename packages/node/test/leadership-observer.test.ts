import { MemberEvents } from '@transitd/cluster';
import { noObserver } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { expect } from 'chai';
import { pino } from 'pino';
import { TestClock } from '../../process/test/test-clock.ts';
import { Leadership, LeadershipObserver } from '../src/leadership.ts';

describe('LeadershipObserver', () => {
  it('reports each change of the role once, and how long a leadership lasted', () => {
    const reports: unknown[] = [];
    const observer = {
      ...noObserver,
      roleChanged: (role: string) => void reports.push(role),
      leadershipLost: (ms: number) => void reports.push(ms),
    };
    const clock = new TestClock();
    const leadership = new LeadershipObserver(observer, clock);
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
      leadership.statusChanged({ role, ready });
    }
    expect(reports).to.deep.equal(['follower', 'candidate', 'leader', 'follower', 50]);
  });
});

describe('the leadership of a member', () => {
  it('began just now if the node leads and its engine has not reported that yet, and when it was reported afterwards', () => {
    const [events, clock] = [new MemberEvents(), new TestClock()];
    const names = { member: () => undefined };
    const leadership = new Leadership({ log: pino({ level: 'silent' }), observer: noObserver }, events, names, clock);
    expect(leadership.activeSince.getTime()).to.equal(clock.utcMs());
    const reportedMs = clock.utcMs();
    const indexes = { lastIndex: 1, commitIndex: 1, transferTo: undefined };
    events.emit('status', {
      ...{ nodeId: 1, role: 'leader', term: 1, leader: 1, ready: true },
      ...indexes,
    } as unknown as DriverStatus);
    clock.ms += 1000;
    expect(leadership.activeSince.getTime()).to.equal(reportedMs);
  });
});
