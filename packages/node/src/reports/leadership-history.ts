import type { Clock } from '@transitd/process';
import type { DriverStatus, NodeId, Term } from '@transitd/raft-core';

/** A leader as this node learned of it. */
export interface LeadershipChange {
  readonly term: Term;
  readonly leader: NodeId;
  /** UTC time of this node's clock, in milliseconds. */
  readonly utcMs: number;
}

/** Enough for a timeline; more changes than this in a short time are a fault that the log shows in full. */
const changesMax = 32;

/** The leaders that this node has known since its start: the newest 32, oldest first. */
export class LeadershipHistory {
  readonly #clock: Clock;
  readonly #changes: LeadershipChange[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get changes(): readonly LeadershipChange[] {
    return this.#changes;
  }

  /** Records a leader of a new term. A term has at most one leader, so silence within a term is no change. */
  statusChanged({ term, leader }: Pick<DriverStatus, 'term' | 'leader'>): void {
    if (leader === 0 || this.#changes.at(-1)?.term === term) return;
    this.#changes.push({ term, leader, utcMs: this.#clock.utcMs() });
    if (this.#changes.length > changesMax) this.#changes.shift();
  }
}
