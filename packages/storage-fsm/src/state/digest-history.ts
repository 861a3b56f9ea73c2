import type { LogIndex } from '@transitd/raft-core';

/** Number of newest indexes that are kept. Nodes compare these while few entries are written. */
const newestKept = 1024;
/** The newest multiples of this number are kept too, so that all nodes have some indexes in common however fast they apply entries. */
const fixedEvery = 4096;
const fixedKept = 64;

/** The state digests at the newest applied indexes, for comparing nodes with each other. */
export class DigestHistory {
  readonly #newest = new Map<LogIndex, bigint>();
  readonly #fixed = new Map<LogIndex, bigint>();

  note(index: LogIndex, digest: bigint): void {
    this.#newest.set(index, digest);
    this.#newest.delete(index - newestKept);
    if (index % fixedEvery !== 0) return;
    this.#fixed.set(index, digest);
    this.#fixed.delete(index - fixedKept * fixedEvery);
  }

  /** Returns the digest at the index, or undefined if it is not kept. */
  at(index: LogIndex): bigint | undefined {
    return this.#newest.get(index) ?? this.#fixed.get(index);
  }

  /** Drops all digests when another state replaces this one, because they do not belong to the new state's history. */
  restart(index: LogIndex, digest: bigint): void {
    this.#newest.clear();
    this.#fixed.clear();
    this.note(index, digest);
  }
}
