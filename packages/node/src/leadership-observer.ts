import type { Clock, NodeObserver } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';

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
