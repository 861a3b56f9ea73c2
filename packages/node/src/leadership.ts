import type { MemberEvents } from '@transitd/cluster';
import type { Clock, Logger, NodeObserver } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { LeadershipLog } from './leadership-log.ts';
import { LeadershipObserver } from './leadership-observer.ts';
import { type LeadershipChange, LeadershipHistory } from './reports/leadership-history.ts';

/** The leaders that this node has known as a member, in the log, in the metrics and for its report. */
export class Leadership {
  readonly #history: LeadershipHistory;
  readonly #clock: Clock;
  #activeSince: Date | undefined;

  /** Follows the events from now on, before anything else that does. */
  constructor({
    events,
    names,
    log,
    observer,
    clock,
  }: {
    readonly events: MemberEvents;
    /** The members known to this node. */
    readonly names: { member(id: NodeId): { readonly name: string } | undefined };
    readonly log: Logger;
    readonly observer: NodeObserver;
    readonly clock: Clock;
  }) {
    this.#clock = clock;
    this.#history = new LeadershipHistory(clock);
    const leadershipLog = new LeadershipLog({ log, names, clock });
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
