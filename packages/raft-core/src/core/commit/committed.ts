import { invariant } from '../../invariant.ts';
import type { LogView } from '../../log/log-view.ts';
import type { Entry, LogIndex } from '../../types.ts';
import type { LogReadRequest } from '../contract/raft-core.ts';

/**
 * Hands out committed entries to be applied, each once and in order. After a restart they are only on disk and are read back in pieces, one
 * request at a time, so that a long log does not have to fit in memory.
 */
export class CommittedEntries {
  readonly #log: LogView;
  readonly #bytesMax: number;
  /** The last entry handed out. */
  #handedOut: LogIndex;
  #requested: LogReadRequest | undefined;
  #readBack: readonly Entry[] = [];

  constructor(log: LogView, { applied, bytesMax }: { readonly applied: LogIndex; readonly bytesMax: number }) {
    this.#log = log;
    this.#bytesMax = bytesMax;
    this.#handedOut = applied;
  }

  get handedOut(): LogIndex {
    return this.#handedOut;
  }

  /** Returns whether `take` would return anything. @param to - the last committed entry that may be applied */
  hasMore(to: LogIndex): boolean {
    if (this.#readBack.length > 0) return true;
    return this.#requested === undefined && this.#handedOut < to;
  }

  take(to: LogIndex): { readonly committed: readonly Entry[]; readonly readLog?: LogReadRequest } {
    if (!this.hasMore(to)) return { committed: [] };
    const lo = this.#handedOut + 1;
    if (this.#readBack.length === 0 && lo < this.#log.memoryFirst) {
      this.#requested = { for: 0, lo, hi: Math.min(to, this.#log.memoryFirst - 1) };
      return { committed: [], readLog: this.#requested };
    }
    const committed = this.#readBack.length > 0 ? this.#readBack : this.#log.inMemory({ lo, hi: to, maxBytes: this.#bytesMax });
    this.#readBack = [];
    this.#handedOut += committed.length;
    return { committed };
  }

  /** Continues after a snapshot that contains everything up to `index`. */
  reset(index: LogIndex): void {
    this.#requested = undefined;
    this.#readBack = [];
    this.#handedOut = index;
  }

  /**
   * Takes the answer to a request. Each request begins above the previous one, also after a snapshot, so `lo` identifies it: the answer to
   * a request that a snapshot has made obsolete is ignored, whether or not it arrives.
   */
  logRead({ lo }: LogReadRequest, entries: readonly Entry[]): void {
    const requested = this.#requested;
    if (requested?.lo !== lo) return;
    for (const [position, { index, term }] of entries.entries()) {
      const expected = { index: requested.lo + position, term: this.#log.termAt(requested.lo + position) };
      const asExpected = index === expected.index && index <= requested.hi && term === expected.term;
      invariant(asExpected, 'the log returns the requested entries', { index, term, expected, ...requested });
    }
    this.#requested = undefined;
    this.#readBack = entries;
  }
}
