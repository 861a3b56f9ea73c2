import type { NodeObserver } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';

const roles = { leader: 'leader', follower: 'follower', precandidate: 'candidate', candidate: 'candidate' } as const;

/** Reports role changes and the length of each leadership to a `NodeObserver`. */
export class LeadershipObserver {
  readonly #observer: NodeObserver;
  readonly #nowMs: () => number;
  #role: string | undefined;
  #leaderSinceMs: number | undefined;

  constructor(observer: NodeObserver, nowMs: () => number) {
    this.#observer = observer;
    this.#nowMs = nowMs;
  }

  statusChanged({ role, ready }: Pick<DriverStatus, 'role' | 'ready'>): void {
    const reported = role === 'faulty' ? undefined : roles[role];
    if (reported !== undefined && reported !== this.#role) this.#observer.roleChanged(reported);
    this.#role = reported;
    if (ready) this.#leaderSinceMs ??= this.#nowMs();
    else if (this.#leaderSinceMs !== undefined) {
      this.#observer.leadershipLost(this.#nowMs() - this.#leaderSinceMs);
      this.#leaderSinceMs = undefined;
    }
  }
}
