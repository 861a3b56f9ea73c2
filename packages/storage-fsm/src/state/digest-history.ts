import type { LogIndex } from '@transitd/raft-core';

/** How many of the newest indexes are kept: nodes compare these while few entries are written. */
const newestKept = 1024;
/** The newest multiples of this index are kept too, so that all nodes share some indexes however fast entries are applied. */
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

  /** Forgets all digests when another state replaces this one: they are not part of its history. */
  restart(index: LogIndex, digest: bigint): void {
    this.#newest.clear();
    this.#fixed.clear();
    this.note(index, digest);
  }
}
