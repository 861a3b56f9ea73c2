import type { LogIndex } from '@transitd/raft-core';

/** The state right after one entry, as a sum over all its records. */
export interface StateDigest {
  readonly index: LogIndex;
  /** Hex. */
  readonly digest: string;
}

export interface StateComparisonOptions {
  readonly appliedIndex: () => LogIndex;
  /** This node's digest at that index; undefined when it is not kept any more. */
  readonly digestAt: (index: LogIndex) => bigint | undefined;
  /** Called once, when this node's state is another one than the active node's at the same index. */
  readonly onDifference: (index: LogIndex) => void;
}

export const hexOf = (digest: bigint): string => digest.toString(16).padStart(64, '0');

/**
 * Whether this node's records are those of the active node: shown by equal digests at one index, before the node answers anything from
 * them after its start (decision 45). A store can lose records without an error, and whoever writes to a disk can put older ones back.
 */
export class StateComparison {
  readonly #options: StateComparisonOptions;
  #told: StateDigest | undefined;
  #verdict: 'unknown' | 'same' | 'different' = 'unknown';

  constructor(options: StateComparisonOptions) {
    this.#options = options;
  }

  /** The active node says what its state was. */
  told(digest: StateDigest): void {
    // One that is waited for is compared first: under load a newer one would always be ahead.
    if (this.#told === undefined || this.#options.appliedIndex() >= this.#told.index) {
      this.#compare();
      this.#told = digest;
    }
    this.#compare();
  }

  get verdict(): 'unknown' | 'same' | 'different' {
    this.#compare();
    return this.#verdict;
  }

  #compare(): void {
    const told = this.#told;
    if (told === undefined || this.#verdict === 'different' || this.#options.appliedIndex() < told.index) return;
    const local = this.#options.digestAt(told.index);
    this.#told = undefined;
    if (local === undefined) return;
    this.#verdict = hexOf(local) === told.digest ? 'same' : 'different';
    if (this.#verdict === 'different') this.#options.onDifference(told.index);
  }
}
