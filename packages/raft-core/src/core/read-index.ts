import type { LogIndex } from '../types.ts';
import type { ReadResult } from './raft-core.ts';

/**
 * Reads that ask for a safe point in the log (Raft §8, thesis §6.4). A new leader may know an old commit index until an entry
 * of its own term commits, so reads wait for that. A lone voter is its own quorum: nobody else can have been elected, and no
 * heartbeat round is needed.
 */
export class ReadIndexQueue {
  /** Asked before the leader's own term had a committed entry. */
  #waiting: number[] = [];
  #results: ReadResult[] = [];

  ask(
    ctx: number,
    { commitIndex, ownTermCommitted }: { readonly commitIndex: LogIndex; readonly ownTermCommitted: boolean },
  ): void {
    if (ownTermCommitted) this.#results.push({ ctx, index: commitIndex });
    else this.#waiting.push(ctx);
  }

  /** An entry of the leader's own term is committed, at or below `commitIndex`. */
  ownTermCommitted(commitIndex: LogIndex): void {
    this.#results.push(...this.#waiting.map((ctx) => ({ ctx, index: commitIndex })));
    this.#waiting = [];
  }

  get hasResults(): boolean {
    return this.#results.length > 0;
  }

  take(): readonly ReadResult[] {
    const results = this.#results;
    this.#results = [];
    return results;
  }

  /** Reads die with the role that took them. */
  clear(): void {
    this.#waiting = [];
    this.#results = [];
  }
}
