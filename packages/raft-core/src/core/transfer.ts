import { invariant } from '../invariant.ts';
import type { LogIndex, NodeId } from '../types.ts';

/**
 * A leader on its way out (thesis §3.10): it stops proposals, lets the target catch up, and tells it to campaign at once. The
 * order to campaign may be delayed or doubled and still fire much later, so from then on this leader holds no lease in this
 * term: the target's votes are asked for regardless of a heard leader.
 */
export class Transfer {
  #target: { readonly id: NodeId; readonly untilMs: number; told: boolean } | undefined;
  #leaseEnded = false;

  get target(): NodeId | undefined {
    return this.#target?.id;
  }
  get leaseEnded(): boolean {
    return this.#leaseEnded;
  }

  begin(id: NodeId, untilMs: number): void {
    invariant(this.#target === undefined, 'one transfer is under way', { target: this.#target?.id, next: id });
    this.#target = { id, untilMs, told: false };
  }

  /** Whether the target is to be told now, once, for it has the whole log. */
  tell(match: LogIndex, lastIndex: LogIndex): boolean {
    const target = this.#target;
    if (target === undefined || target.told || match < lastIndex) return false;
    target.told = true;
    this.#leaseEnded = true;
    return true;
  }

  isOverdue(nowMs: number): boolean {
    return this.#target !== undefined && nowMs >= this.#target.untilMs;
  }

  abort(): void {
    this.#target = undefined;
  }

  /** A TimeoutNow leaves outside of a transfer, with a leader that steps down. */
  endLease(): void {
    this.#leaseEnded = true;
  }
}
