import { noObserver } from '@transitd/process';
import { expect } from 'chai';
import { TestClock } from '../../process/test/test-clock.ts';
import { LeadershipObserver } from '../src/leadership-observer.ts';

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
