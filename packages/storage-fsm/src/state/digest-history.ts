import type { LogIndex } from '@transitd/raft-core';

/** Newest indexes that are remembered, whatever they are: what nodes compare while little is written. */
const newestKept = 1024;
/** Beside them, indexes that every node remembers however fast entries come: the newest multiples of this. */
const fixedEvery = 4096;
const fixedKept = 64;

/** Digests of the state at the newest applied indexes, for comparing nodes with each other. */
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

  /** Undefined where it is not remembered. */
  at(index: LogIndex): bigint | undefined {
    return this.#newest.get(index) ?? this.#fixed.get(index);
  }

  /** Another state begins: what was before it is not its past. */
  restart(index: LogIndex, digest: bigint): void {
    this.#newest.clear();
    this.#fixed.clear();
    this.note(index, digest);
  }
}
