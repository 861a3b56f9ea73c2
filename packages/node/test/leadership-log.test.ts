import type { Logger } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { expect } from 'chai';
import { TestClock } from '../../process/test/test-clock.ts';
import { HealthLog } from '../src/health-log.ts';
import { LeadershipLog } from '../src/leadership-log.ts';

function logs() {
  const clock = new TestClock();
  const lines: string[] = [];
  const write = ({ term, leader, former, to, health, before }: Record<string, unknown>, message: string) =>
    lines.push([message, term, leader ?? former ?? to, health, before].filter((part) => part !== undefined).join(', '));
  const warnings: string[] = [];
  const warn = (fields: Record<string, unknown>, message: string) => {
    warnings.push(message);
    write(fields, message);
  };
  const log = { info: write, warn, error: write } as unknown as Logger;
  return { clock, lines, warnings, log };
}

type Seen = Pick<DriverStatus, 'role' | 'term' | 'leader' | 'transferTo'> & { readonly ready?: boolean };

describe('LeadershipLog', () => {
  const linesFor = (...statuses: readonly Seen[]): readonly string[] => {
    const { lines, log, clock } = logs();
    const leadership = new LeadershipLog(log, { member: (id) => ({ name: `n${id}` }) }, clock);
    for (const status of statuses) {
      leadership.statusChanged({ nodeId: 1, ready: false, lastIndex: 9, commitIndex: 8, ...status });
      clock.ms += 100;
    }
    return lines;
  };

  it('logs that this node was elected, is ready, and lost the leadership, each with the term', () =>
    expect(
      linesFor(
        { role: 'candidate', term: 3, leader: 0 },
        { role: 'leader', term: 3, leader: 1 },
        { role: 'leader', term: 3, leader: 1, ready: true },
        { role: 'follower', term: 4, leader: 0 },
        { role: 'follower', term: 4, leader: 2 },
      ),
    ).to.deep.equal([
      'this node asks for votes, 3',
      'this node was elected leader, 3',
      'this node leads and has applied an entry of its term, 3',
      'this node lost the leadership, 3',
      'this node follows another leader, 4, n2',
    ]));

  it('warns of no election that a new node wins at once, but of each that it must wait for', () => {
    const warningsFor = (...roles: readonly Seen['role'][]): readonly string[] => {
      const { warnings, log, clock } = logs();
      const leadership = new LeadershipLog(log, { member: (id) => ({ name: String(id) }) }, clock);
      for (const role of roles)
        leadership.statusChanged({
          ...{ nodeId: 1, role, term: 1, leader: role === 'leader' ? 1 : 0 },
          ...{ ready: false, lastIndex: 0, commitIndex: 0 },
        });
      return warnings;
    };
    expect(warningsFor('follower', 'candidate', 'leader')).to.deep.equal([]);
    const [asks, unheard, lost] = ['this node asks for votes', 'no leader is heard', 'this node lost the leadership'];
    expect(warningsFor('follower', 'candidate', 'precandidate')).to.deep.equal([unheard]);
    expect(warningsFor('precandidate', 'candidate', 'leader')).to.deep.equal([asks, unheard]);
    expect(warningsFor('candidate', 'leader', 'follower', 'candidate')).to.deep.equal([lost, asks, unheard]);
  });

  it('logs each transfer of its leadership, and that a transfer was given up', () => {
    const leads = { role: 'leader', term: 3, leader: 1, ready: true } as const;
    const lines = linesFor(
      leads,
      { ...leads, transferTo: 2 },
      leads,
      { ...leads, transferTo: 3 },
      { ...leads, term: 4, leader: 3, role: 'follower' },
    );
    expect(lines.slice(2)).to.deep.equal([
      'this node transfers its leadership, 3, n2',
      'a leadership transfer was given up, 3, n2',
      'this node transfers its leadership, 3, n3',
      'this node lost the leadership, 3, n3',
      'this node follows another leader, 4, n3',
    ]);
  });

  it('logs when a follower no longer hears a leader, and when it hears one again', () =>
    expect(
      linesFor(
        { role: 'follower', term: 3, leader: 2 },
        { role: 'precandidate', term: 3, leader: 0 },
        { role: 'follower', term: 3, leader: 0 },
        { role: 'precandidate', term: 3, leader: 0 },
        { role: 'follower', term: 3, leader: 2 },
        { role: 'follower', term: 5, leader: 3 },
      ),
    ).to.deep.equal([
      'this node follows another leader, 3, n2',
      'this node asks for votes, 3, n2',
      'no leader is heard, 3, n2',
      'the leader is heard again, 3, n2',
      'this node follows another leader, 5, n3',
    ]));

  it('logs each change of health once', () => {
    const { lines, log, clock } = logs();
    const health = new HealthLog(log, clock);
    for (const code of [501, 501, 473, 473, 474, 473]) health.observe(code);
    expect(lines).to.deep.equal([
      'this node belongs to no cluster yet, 501',
      'this node has caught up with the active node and answers from its own state, 473, 501',
      'this node is cut off: no active node has answered its heartbeats for twice cluster_heartbeat_interval, 474, 473',
      'this node has caught up with the active node and answers from its own state, 473, 474',
    ]);
  });
});
