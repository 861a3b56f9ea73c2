import type { NodeObserver } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';

const roles = { leader: 'leader', follower: 'follower', precandidate: 'candidate', candidate: 'candidate' } as const;

/** Tells of roles and of leads that end, from the states that consensus announces. */
export class LeadershipObserver {
  readonly #observer: NodeObserver;
  readonly #nowMs: () => number;
  #role: string | undefined;
  #leadsSinceMs: number | undefined;

  constructor(observer: NodeObserver, nowMs: () => number) {
    this.#observer = observer;
    this.#nowMs = nowMs;
  }

  statusChanged({ role, ready }: Pick<DriverStatus, 'role' | 'ready'>): void {
    const told = role === 'faulty' ? undefined : roles[role];
    if (told !== undefined && told !== this.#role) this.#observer.roleChanged(told);
    this.#role = told;
    if (ready) this.#leadsSinceMs ??= this.#nowMs();
    else if (this.#leadsSinceMs !== undefined) {
      this.#observer.leadershipLost(this.#nowMs() - this.#leadsSinceMs);
      this.#leadsSinceMs = undefined;
    }
  }
}
