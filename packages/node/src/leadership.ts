import type { MemberEvents } from '@transitd/cluster';
import { type Clock, type NodeObserver, systemClock } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { LeadershipLog, type MemberNames } from './leadership-log.ts';
import type { NodeHost } from './node-host.ts';
import type { LeadershipChange } from './reports/node-report.ts';

/** Enough for a timeline; more changes than this in a short time are a fault that the log shows in full. */
const changesMax = 32;

/** What a node is named in metrics, by its Raft role. */
const roles = { leader: 'leader', follower: 'follower', precandidate: 'candidate', candidate: 'candidate' } as const;

/** The leaders that this node has known as a member, in the log, in the metrics and for its report. */
export class Leadership {
  readonly #observer: NodeObserver;
  readonly #clock: Clock;
  readonly #changes: LeadershipChange[] = [];
  #observedRole: string | undefined;
  #readySinceMs: number | undefined;
  #activeSince: Date | undefined;

  /** Follows the events from now on, before anything else that does. */
  constructor(
    { log, observer }: Pick<NodeHost, 'log' | 'observer'>,
    events: MemberEvents,
    names: MemberNames,
    clock: Clock = systemClock,
  ) {
    this.#observer = observer;
    this.#clock = clock;
    const leadershipLog = new LeadershipLog(log, names, clock);
    events.on('status', (status) => {
      leadershipLog.statusChanged(status);
      this.#observe(status);
      this.#note(status);
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

  /** The leaders that this node has known since its start: the newest 32, oldest first. */
  get changes(): readonly LeadershipChange[] {
    return this.#changes;
  }

  /** Reports a change of the role, and the length of a leadership that has ended. */
  #observe({ role, ready }: DriverStatus): void {
    const observed = role === 'faulty' ? undefined : roles[role];
    if (observed !== undefined && observed !== this.#observedRole) this.#observer.roleChanged(observed);
    this.#observedRole = observed;
    if (ready) this.#readySinceMs ??= this.#clock.nowMs();
    else if (this.#readySinceMs !== undefined) {
      this.#observer.leadershipLost(this.#clock.nowMs() - this.#readySinceMs);
      this.#readySinceMs = undefined;
    }
  }

  /** Notes the leader of a new term. A term has at most one leader, so silence within a term is no change. */
  #note({ term, leader }: DriverStatus): void {
    if (leader === 0 || this.#changes.at(-1)?.term === term) return;
    this.#changes.push({ term, leader, utcMs: this.#clock.utcMs() });
    if (this.#changes.length > changesMax) this.#changes.shift();
  }
}
