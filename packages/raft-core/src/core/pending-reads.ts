import type { ReadResult } from './raft-core.ts';

/**
 * This node's own reads: those that it has asked its leader about, until the answer, the end of that lead, or a while has
 * passed; and what became of any of them.
 */
export class PendingReads {
  /** Asked of the leader, by context: until when the answer is waited for. */
  readonly #forwarded = new Map<number, number>();
  #results: ReadResult[] = [];
  #dropped: number[] = [];

  get hasResults(): boolean {
    return this.#results.length > 0 || this.#dropped.length > 0;
  }

  forward(ctx: number, untilMs: number): void {
    this.#forwarded.set(ctx, untilMs);
  }

  /** Whether this read still waits for the leader. No more once it is answered. */
  answered(ctx: number): boolean {
    return this.#forwarded.delete(ctx);
  }

  confirm(result: ReadResult): void {
    this.#results.push(result);
  }

  drop(ctxs: readonly number[]): void {
    this.#dropped.push(...ctxs);
  }

  expire(nowMs: number): void {
    for (const [ctx, untilMs] of this.#forwarded) {
      if (untilMs > nowMs) continue;
      this.#forwarded.delete(ctx);
      this.#dropped.push(ctx);
    }
  }

  leaderLost(): void {
    this.drop([...this.#forwarded.keys()]);
    this.#forwarded.clear();
  }

  take(): { readonly reads: readonly ReadResult[]; readonly droppedReads: readonly number[] } {
    const [reads, droppedReads] = [this.#results, this.#dropped];
    this.#results = [];
    this.#dropped = [];
    return { reads, droppedReads };
  }
}
