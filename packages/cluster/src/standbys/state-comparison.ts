import type { LogIndex } from '@transitd/raft-core';

/** The state digest after one entry: a hash over all records. */
export interface StateDigest {
  readonly index: LogIndex;
  /** Hex. */
  readonly digest: string;
}

export interface StateComparisonOptions {
  readonly appliedIndex: () => LogIndex;
  /** Returns this node's digest at an index; undefined when it is no longer kept. */
  readonly digestAt: (index: LogIndex) => bigint | undefined;
  /** Called once, when this node's digest differs from the active node's at the same index. */
  readonly onDigestMismatch: (index: LogIndex) => void;
}

export const hexOf = (digest: bigint): string => digest.toString(16).padStart(64, '0');

/**
 * Compares this node's records with the active node's by their state digests at one index. After a start this node serves nothing from its
 * records until a comparison succeeds: a store can lose records without an error, and an attacker with access to the disk can
 * put older records back.
 */
export class StateComparison {
  readonly #options: StateComparisonOptions;
  #pending: StateDigest | undefined;
  #verdict: 'unknown' | 'same' | 'different' = 'unknown';

  constructor(options: StateComparisonOptions) {
    this.#options = options;
  }

  /** Compares a digest of the active node as soon as its index is applied here. */
  compareWith(digest: StateDigest): void {
    // A pending digest is compared first: under load a newer one would always be ahead of the applied index.
    if (this.#pending === undefined || this.#options.appliedIndex() >= this.#pending.index) {
      this.#compare();
      this.#pending = digest;
    }
    this.#compare();
  }

  get verdict(): 'unknown' | 'same' | 'different' {
    this.#compare();
    return this.#verdict;
  }

  #compare(): void {
    const pending = this.#pending;
    if (pending === undefined || this.#verdict === 'different' || this.#options.appliedIndex() < pending.index) return;
    const local = this.#options.digestAt(pending.index);
    this.#pending = undefined;
    if (local === undefined) return;
    this.#verdict = hexOf(local) === pending.digest ? 'same' : 'different';
    if (this.#verdict === 'different') this.#options.onDigestMismatch(pending.index);
  }
}
