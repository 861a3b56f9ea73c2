import type { CoreRefusal, ReadResult } from '../core/contract/raft-core.ts';
import { invariant } from '../invariant.ts';
import type { LogIndex } from '../types.ts';
import type { ReadOutcome, RefusalReason } from './outcome.ts';

/** Called once. */
export type ReadDone = (outcome: ReadOutcome) => void;

/** Reads in progress: requested, then confirmed by the core, then waiting until the entries before them are applied. */
export class Reads {
  #requested: ReadDone[] = [];
  /** One request to the core covers all reads of one turn. */
  readonly #confirming = new Map<number, readonly ReadDone[]>();
  /** Ascending by index. */
  #confirmed: { readonly index: LogIndex; readonly dones: readonly ReadDone[] }[] = [];
  #ctx = 0;

  request(done: ReadDone): void {
    this.#requested.push(done);
  }

  submit(readIndex: (ctx: number) => CoreRefusal | undefined): void {
    if (this.#requested.length === 0) return;
    const dones = this.#requested;
    this.#requested = [];
    this.#ctx += 1;
    const reason = readIndex(this.#ctx);
    if (reason === undefined) this.#confirming.set(this.#ctx, dones);
    else for (const done of dones) done({ kind: 'refused', reason });
  }

  confirmed(results: readonly ReadResult[]): void {
    for (const { ctx, index } of results) {
      const dones = this.#confirming.get(ctx);
      invariant(dones !== undefined, 'the core confirms each requested read once', { ctx, index });
      this.#confirming.delete(ctx);
      const later = this.#confirmed.findIndex((read) => read.index > index);
      this.#confirmed.splice(later < 0 ? this.#confirmed.length : later, 0, { index, dones });
    }
  }

  /** Refuses reads that the core can no longer confirm. */
  dropped(ctxs: readonly number[]): void {
    for (const ctx of ctxs) {
      const dones = this.#confirming.get(ctx);
      invariant(dones !== undefined, 'the core drops each requested read once', { ctx });
      this.#confirming.delete(ctx);
      for (const done of dones) done({ kind: 'refused', reason: 'lostLeadership' });
    }
  }

  applied(appliedIndex: LogIndex): void {
    for (let next = this.#confirmed[0]; next !== undefined && next.index <= appliedIndex; next = this.#confirmed[0]) {
      this.#confirmed.shift();
      for (const done of next.dones) done({ kind: 'readable', index: next.index });
    }
  }

  /** Refuses the reads that wait until entries are applied. */
  refuseWaiting(reason: RefusalReason): void {
    const dones = this.#confirmed.flatMap((read) => read.dones);
    this.#confirmed = [];
    for (const done of dones) done({ kind: 'refused', reason });
  }

  refuseAll(reason: RefusalReason): void {
    const dones = [
      ...this.#requested,
      ...[...this.#confirming.values()].flat(),
      ...this.#confirmed.flatMap((read) => read.dones),
    ];
    this.#requested = [];
    // The core may still confirm these, but no caller waits any longer.
    for (const ctx of this.#confirming.keys()) this.#confirming.set(ctx, []);
    this.#confirmed = [];
    for (const done of dones) done({ kind: 'refused', reason });
  }
}
