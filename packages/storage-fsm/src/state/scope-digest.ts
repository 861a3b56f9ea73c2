import type { LogIndex } from '@transitd/raft-core';
import { addToDigest, emptyDigest, removeFromDigest } from '../store/digest.ts';

/** How many of the newest positions are kept for comparisons between clusters. */
const kept = 1024;

/**
 * Computes the digest of the replicated records from their paths and service indexes, so that two clusters at one position have the same
 * digest. It starts with the changes only. The records that existed before are added later, in the background; until then the digest is
 * unknown.
 */
export class ScopeDigest {
  #base: bigint | undefined;
  #changes = emptyDigest;
  /** Incremented whenever another state begins, so that a sum over the earlier state is dropped. */
  #beginning = 0;
  readonly #positions: { readonly index: LogIndex; readonly changes: bigint }[] = [];

  /** Starts over with another state, whose digest may already be known. */
  restart(digest?: bigint): void {
    this.#base = digest;
    this.#changes = emptyDigest;
    this.#beginning += 1;
    this.#positions.length = 0;
  }

  add(share: bigint): void {
    this.#changes = addToDigest(this.#changes, share);
  }

  remove(share: bigint): void {
    this.#changes = removeFromDigest(this.#changes, share);
  }

  /** Keeps the digest of a position. Entries that change no replicated record do not move the position. */
  note(index: LogIndex): void {
    if (this.#positions.at(-1)?.index === index) this.#positions.pop();
    this.#positions.push({ index, changes: this.#changes });
    if (this.#positions.length > kept) this.#positions.shift();
  }

  /** Returns the digest right after the position, or undefined if it is not kept or not yet known. */
  at(index: LogIndex): bigint | undefined {
    const found = this.#positions.findLast((position) => position.index === index);
    return found === undefined || this.#base === undefined ? undefined : addToDigest(this.#base, found.changes);
  }

  /** Returns a function that accepts the sum over all replicated records as of this call. */
  measuring(): (sum: bigint) => void {
    const [beginning, changes] = [this.#beginning, this.#changes];
    return (sum) => {
      if (beginning === this.#beginning) this.#base = removeFromDigest(sum, changes);
    };
  }
}
