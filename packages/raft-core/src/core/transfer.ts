import { invariant } from '../invariant.ts';
import type { LogIndex, NodeId } from '../types.ts';

/**
 * A leadership transfer (thesis §3.10): the leader stops taking proposals, lets the target catch up, and tells it to campaign at once. That
 * message may be delayed or duplicated and take effect much later, so from then on this leader holds no lease in this term: voters vote for
 * the target although they heard a leader recently.
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
    invariant(this.#target === undefined, 'at most one transfer is under way', { target: this.#target?.id, next: id });
    this.#target = { id, untilMs, told: false };
  }

  /** Returns true once, when the target has the whole log and must be told to campaign. */
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

  /** Notes a TimeoutNow outside of a transfer, sent by a leader that steps down. */
  endLease(): void {
    this.#leaseEnded = true;
  }
}
