import type { MemberEvents } from '@transitd/cluster';
import { type Clock, type Logger, type NodeObserver, systemClock } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { LeadershipLog, type MemberNames } from './leadership-log.ts';
import { type LeadershipChange, LeadershipHistory } from './reports/leadership-history.ts';

/** The leaders that this node has known as a member, in the log, in the metrics and for its report. */
export class Leadership {
  readonly #history: LeadershipHistory;
  readonly #clock: Clock;
  #activeSince: Date | undefined;

  /** Follows the events from now on, before anything else that does. */
  constructor(
    { log, observer }: { readonly log: Logger; readonly observer: NodeObserver },
    events: MemberEvents,
    names: MemberNames,
    clock: Clock = systemClock,
  ) {
    this.#clock = clock;
    this.#history = new LeadershipHistory(clock);
    const leadershipLog = new LeadershipLog(log, names, clock);
    const leadershipObserver = new LeadershipObserver(observer, clock);
    events.on('status', (status) => {
      leadershipLog.statusChanged(status);
      leadershipObserver.statusChanged(status);
      this.#history.statusChanged(status);
      this.#activeSince = status.ready ? (this.#activeSince ?? new Date(clock.utcMs())) : undefined;
    });
    events.on('services', ({ isLoaded }) => {
      if (isLoaded) this.#activeSince = new Date(clock.utcMs());
    });
  }

  /** When this node began to lead or its services were loaded, whichever was later. Now, if it leads and that is not reported yet. */
  get activeSince(): Date {
    return this.#activeSince ?? new Date(this.#clock.utcMs());
  }

  get changes(): readonly LeadershipChange[] {
    return this.#history.changes;
  }
}

/** What a node is named in metrics, by its Raft role. */
const roles = { leader: 'leader', follower: 'follower', precandidate: 'candidate', candidate: 'candidate' } as const;

/** Reports role changes and the length of each leadership to a `NodeObserver`. */
export class LeadershipObserver {
  readonly #observer: NodeObserver;
  readonly #clock: Clock;
  #role: string | undefined;
  #leaderSinceMs: number | undefined;

  constructor(observer: NodeObserver, clock: Clock) {
    this.#observer = observer;
    this.#clock = clock;
  }

  statusChanged({ role, ready }: Pick<DriverStatus, 'role' | 'ready'>): void {
    const reported = role === 'faulty' ? undefined : roles[role];
    if (reported !== undefined && reported !== this.#role) this.#observer.roleChanged(reported);
    this.#role = reported;
    if (ready) this.#leaderSinceMs ??= this.#clock.nowMs();
    else if (this.#leaderSinceMs !== undefined) {
      this.#observer.leadershipLost(this.#clock.nowMs() - this.#leaderSinceMs);
      this.#leaderSinceMs = undefined;
    }
  }
}
