import type { LogIndex } from '@transitd/raft-core';

/** How far a secondary is behind its primary. */
export interface Lag {
  readonly entries: number;
  /** Age of the oldest entry that the secondary is known to lack; 0 if it lacks none. */
  readonly ms: number;
}

/** Maximum number of positions whose times are kept. */
const marksMax = 256;

interface Mark {
  readonly index: LogIndex;
  readonly ms: number;
}

/**
 * Measures the lag of a secondary, on either side of a connection. It keeps the positions of the primary that the secondary lacks, each
 * with the time when this side learned of it.
 */
export class LagMeter {
  /** Positions that the secondary lacks, oldest first. */
  #marks: Mark[] = [];
  #newest: Mark = { index: 0, ms: 0 };
  #applied: LogIndex = 0;
  /** Every n-th position is kept, where n is this number. */
  #stride = 1;
  #skipped = 0;

  /** Records a position of the primary. */
  known(index: LogIndex, nowMs: number): void {
    if (index <= this.#newest.index) return;
    this.#newest = { index, ms: nowMs };
    this.#skipped += 1;
    if (index <= this.#applied || (this.#marks.length > 0 && this.#skipped < this.#stride)) return;
    this.#marks.push(this.#newest);
    this.#skipped = 0;
    if (this.#marks.length <= marksMax) return;
    this.#marks = this.#marks.filter((_, at) => at % 2 === 0);
    this.#stride *= 2;
  }

  /** Records the position of the secondary. */
  applied(index: LogIndex): void {
    this.#applied = index;
    const first = this.#marks.findIndex((mark) => mark.index > index);
    if (first !== 0) this.#marks.splice(0, first === -1 ? this.#marks.length : first);
    if (this.#marks.length > 0) return;
    this.#stride = 1;
    if (this.#newest.index > index) this.#marks.push(this.#newest);
  }

  at(nowMs: number): Lag {
    const [oldest] = this.#marks;
    return { entries: Math.max(0, this.#newest.index - this.#applied), ms: oldest === undefined ? 0 : nowMs - oldest.ms };
  }
}
