import type { CoreRefusal, Status } from '../core/contract/raft-core.ts';
import type { NodeId, Term } from '../types.ts';
import type { RefusalReason, TransferOutcome } from './outcome.ts';

/** Called once. */
export type TransferDone = (outcome: TransferOutcome) => void;

/** Requests to transfer leadership, until each has its outcome. */
export class Transfers {
  #queued: { readonly to: NodeId | undefined; readonly done: TransferDone }[] = [];
  #underWay: TransferDone | undefined;
  #term: Term = 0;

  queue(to: NodeId | undefined, done: TransferDone): void {
    this.#queued.push({ to, done });
  }

  submit(transfer: (to: NodeId | undefined) => CoreRefusal | 'noTarget' | undefined): void {
    const queued = this.#queued;
    this.#queued = [];
    for (const { to, done } of queued) {
      const reason = transfer(to);
      if (reason === undefined) this.#underWay = done;
      else done({ kind: 'refused', reason });
    }
  }

  /** Called each turn with the core's status. */
  observe({ role, term, transferTo }: Pick<Status, 'role' | 'term' | 'transferTo'>): void {
    const done = this.#underWay;
    const leads = role === 'leader' && (this.#term === 0 || term === this.#term);
    if (done === undefined || (leads && transferTo !== undefined)) {
      this.#term = term;
      return;
    }
    this.#underWay = undefined;
    done({ kind: leads ? 'aborted' : 'resigned' });
  }

  refuseAll(reason: RefusalReason): void {
    const queued = this.#queued;
    const underWay = this.#underWay;
    this.#queued = [];
    this.#underWay = undefined;
    for (const { done } of queued) done({ kind: 'refused', reason });
    underWay?.({ kind: 'aborted' });
  }
}
