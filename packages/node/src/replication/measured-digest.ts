import { reasonOf } from '@transitd/process';
import { positionOf, type ReplicationState } from '@transitd/storage-fsm';
import type { ReplicationParts } from './replication-parts.ts';

/** Computes the digest of the replicated records after a start or a replaced state, so that digests can be compared. */
export class MeasuredDigest {
  readonly #parts: Pick<ReplicationParts, 'storage' | 'log'>;
  #isMeasuring = false;

  constructor(parts: Pick<ReplicationParts, 'storage' | 'log'>) {
    this.#parts = parts;
  }

  /** Begins to compute the digest unless it is known, or being computed. Call it from time to time. */
  measure(state: ReplicationState): void {
    const { storage, log } = this.#parts;
    const { machine } = storage;
    const isKnown = machine.scopeDigestAt(positionOf(state, machine.applied.appliedIndex)) !== undefined;
    if (isKnown || this.#isMeasuring || (state.epochs.length === 0 && state.role !== 'primary')) return;
    this.#isMeasuring = true;
    machine
      .measureScope()
      .catch((error: unknown) =>
        log.warn({ reason: reasonOf(error) }, 'the digest of the replicated records could not be computed'),
      )
      .finally(() => {
        this.#isMeasuring = false;
      });
  }
}
