import type { LogIndex, Message, NodeId } from '@transitd/raft-core';
import type { Coverage } from '../checks/coverage.ts';
import { holds } from '../checks/violation.ts';
import type { LeaseGuard } from './lease-guard.ts';

interface Parts {
  readonly id: NodeId;
  readonly leaseGuard: LeaseGuard;
  /** Returns the index of the state that the node has applied and published. */
  readonly applied: () => LogIndex;
  readonly coverage: Coverage;
}

/**
 * Other threads of a node's process that read its applied state at any time while the lease lasts that the driver has reported
 * (`DriverOptions.onLease`), also in the middle of a turn of the driver.
 */
export class ReadingThreads {
  readonly #parts: Parts;
  #leaseEndMs: number | undefined;
  /** Index of the state for which the driver has reported the lease. */
  #reportedAt: LogIndex = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** @param answeredUpTo - highest log position that any answer of the cluster has shown */
  lease(endMs: number | undefined, answeredUpTo: LogIndex): void {
    this.#leaseEndMs = endMs;
    this.#reportedAt = this.#parts.applied();
    if (endMs !== undefined) this.#parts.coverage.met('lease reported to other threads');
    this.answered(answeredUpTo);
  }

  /** Checks the state that a thread could read now. */
  answered(answeredUpTo: LogIndex): void {
    const { id, applied } = this.#parts;
    holds('no thread reads a state older than an answer', !this.#mayRead || applied() >= answeredUpTo, () => ({
      id,
      applied: applied(),
      answeredUpTo,
    }));
  }

  /**
   * Checks messages of this node: they confirm no state that a thread cannot read yet, or for which the driver has not reported whether
   * threads may read it; and while a thread may read, they show no peer such a state and do not end the lease.
   */
  sends(messages: readonly Message[]): void {
    const applied = this.#parts.applied();
    const mayRead = this.#mayRead;
    for (const message of messages) {
      const { type, from, to } = message;
      const confirmed = type === 'ConfirmResp' ? message.index : 0;
      holds('no node confirms what its threads cannot read', confirmed <= applied, () => ({ from, to, confirmed, applied }));
      const reportedAt = this.#reportedAt;
      holds('no node confirms a state before its lease is reported', confirmed <= reportedAt, () => ({
        from,
        confirmed,
        reportedAt,
      }));
      if (!mayRead) continue;
      const commit = 'commit' in message ? message.commit : 0;
      holds('no message shows what a thread cannot read yet', commit <= applied, () => ({ type, from, to, commit, applied }));
      holds('no message ends a lease by which a thread reads', type !== 'TimeoutNow', () => ({ from, to }));
    }
  }

  get #mayRead(): boolean {
    return this.#parts.leaseGuard.judge(this.#leaseEndMs) === 'held';
  }
}
