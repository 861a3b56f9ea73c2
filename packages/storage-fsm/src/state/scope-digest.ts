import type { LogIndex } from '@transitd/raft-core';
import { addToDigest, emptyDigest, removeFromDigest } from '../store/digest.ts';

/** How many of the newest positions are kept for comparisons between clusters. */
const kept = 1024;

/**
 * The digest of the replicated records, by path and service index, so that it is the same on two clusters at one position. The records that
 * existed when this began to count are summed up later, in the background; until then only the changes since the beginning are known.
 */
export class ScopeDigest {
  #base: bigint | undefined;
  #changes = emptyDigest;
  /** Raised whenever another state begins, so that a sum over the state before is dropped. */
  #beginning = 0;
  readonly #positions: { readonly index: LogIndex; readonly changes: bigint }[] = [];

  /** Starts again with another state, whose digest may be known. */
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

  /** Keeps the digest of a position; entries that change nothing replicated stay at one position. */
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

  /** Returns a function that takes the sum over all replicated records as they are at the time of this call. */
  measuring(): (sum: bigint) => void {
    const [beginning, changes] = [this.#beginning, this.#changes];
    return (sum) => {
      if (beginning === this.#beginning) this.#base = removeFromDigest(sum, changes);
    };
  }
}
