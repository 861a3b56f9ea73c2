import type { ReadResult } from '../contract/raft-core.ts';

/**
 * This node's own reads. A read sent to the leader waits until it is answered, the leadership ends, or it times out; the results of all
 * reads are collected here.
 */
export class PendingReads {
  /** Reads sent to the leader, by context, with the time at which each expires. */
  readonly #forwarded = new Map<number, number>();
  #results: ReadResult[] = [];
  #dropped: number[] = [];

  get hasResults(): boolean {
    return this.#results.length > 0 || this.#dropped.length > 0;
  }

  forward(ctx: number, untilMs: number): void {
    this.#forwarded.set(ctx, untilMs);
  }

  /** Stops waiting for the leader's answer to this read. Returns whether the read was still waiting. */
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
