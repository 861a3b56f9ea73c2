import type { ClockDispute, ClockDisputes, TimeSource } from './clock-dispute.ts';

/** The dates of a record that expires, in milliseconds since the epoch; 0 for none. */
export interface Dates {
  readonly createdMs: number;
  readonly renewedMs: number;
  readonly expiresMs: number;
}

/** Dates that were written by the later of two clocks that disagreed, and the same dates by the earlier clock. */
interface Disputed {
  readonly written: Dates;
  readonly byEarlier: Dates;
  /** Reads the record, and replaces its dates unless they are unchanged. Does nothing if the record no longer exists. */
  readonly rewrite: (corrected: (stored: Dates) => Dates) => Promise<unknown>;
}

/** Maximum number of records in memory. Dates of further records are not corrected. */
const recordsMax = 65_536;
/** Deviation of the clocks during one dispute that is not a new setting of the wall clock, in milliseconds. */
const driftMsMax = 10_000;

/**
 * Remembers the records that this node dated while its clocks disagreed. Records are dated by the later clock, so that they are not refused
 * at once. If the earlier clock turns out to be right, these records would expire too late: then each is rewritten once with the dates of
 * the earlier clock. In memory only: a node that stops, seals or loses leadership for good corrects nothing.
 */
export class DisputedDates {
  readonly #clocks: ClockDisputes;
  readonly #stop: () => void;
  /** By the record's path: records of a dispute that is not decided. */
  #pending = new Map<string, Disputed & { readonly dispute: ClockDispute }>();
  /** By the record's path: records to rewrite. */
  readonly #due = new Map<string, Disputed>();

  constructor(clocks: ClockDisputes) {
    this.#clocks = clocks;
    this.#stop = clocks.onDecided((right, aheadMs) => this.#decided(right, aheadMs));
  }

  /** Returns the present dispute of the clocks. Call this before reading the time with which a record is dated. */
  current(): ClockDispute | undefined {
    return this.#clocks.current();
  }

  /** Remembers a record that was written during `dispute`; does nothing without a dispute. */
  note(path: string, dispute: ClockDispute | undefined, disputed: Disputed): void {
    const isFull = this.#pending.size + this.#due.size >= recordsMax;
    if (dispute === undefined || (isFull && !this.#pending.has(path))) return;
    this.#pending.set(path, { ...disputed, dispute });
  }

  /** Returns the dates of a record by the earlier clock, if the record was written while the clocks disagreed. */
  byEarlier(path: string): Dates | undefined {
    return (this.#pending.get(path) ?? this.#due.get(path))?.byEarlier;
  }

  /**
   * Rewrites up to `limit` records. Only the active node calls it. Returns the number of records. A failure keeps the remaining records for
   * the next call, which comes to the record that failed last.
   */
  async correct(limit: number): Promise<number> {
    let count = 0;
    for (const [path, disputed] of [...this.#due].slice(0, limit)) {
      try {
        await disputed.rewrite((stored) => corrected(stored, disputed));
      } catch (error) {
        // A record that always fails, such as an unreadable one, must not hold up the others.
        if (this.#due.delete(path)) this.#due.set(path, disputed);
        throw error;
      }
      if (this.#due.get(path) === disputed) this.#due.delete(path);
      count += 1;
    }
    return count;
  }

  /** Stops listening and forgets all records. */
  close(): void {
    this.#stop();
    this.#pending.clear();
    this.#due.clear();
  }

  #decided(right: TimeSource, aheadMs: number): void {
    for (const [path, { dispute, ...disputed }] of this.#pending) {
      // The wall clock may have been set again since: a record is never moved back by more than the time that was accepted.
      const isAccepted = right === 'steady' || dispute.differenceMs <= driftMsMax - aheadMs;
      if (dispute.earlier === right && isAccepted) this.#due.set(path, disputed);
    }
    this.#pending = new Map();
  }
}

/** Returns the dates that a new record would have by the earlier clock. */
export const earlierBy = ({ createdMs, renewedMs, expiresMs }: Dates, { differenceMs }: ClockDispute): Dates => ({
  createdMs: createdMs - differenceMs,
  renewedMs: renewedMs === 0 ? 0 : renewedMs - differenceMs,
  expiresMs: expiresMs === 0 ? 0 : expiresMs - differenceMs,
});

/** Replaces the dates that are as written. A date that changed since was written by another request, and stays. Never extends a record. */
function corrected({ createdMs, renewedMs, expiresMs }: Dates, { written, byEarlier }: Disputed): Dates {
  const isSame = renewedMs === written.renewedMs && expiresMs === written.expiresMs;
  return {
    createdMs: createdMs === written.createdMs ? byEarlier.createdMs : createdMs,
    renewedMs: isSame ? byEarlier.renewedMs : renewedMs,
    expiresMs: isSame ? Math.min(expiresMs, byEarlier.expiresMs) : expiresMs,
  };
}
