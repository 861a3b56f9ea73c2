import type { Where } from '../api/operation.ts';
import { BodyMemory } from './body-memory.ts';
import { WorkLimit } from './work-limit.ts';

export interface LimitsConfig {
  /** Requests at work at a time that any replica may answer: cryptography, reads, lists. */
  readonly reads: number;
  /** The same of those that the active node alone answers. */
  readonly changes: number;
  /** In line for each of the two. */
  readonly waiting: number;
  /** Bytes. */
  readonly body_memory: number;
}

/**
 * What one node takes on at a time, whichever of its listeners it comes by; a request that is handed on counts where it is worked on. Two kinds
 * of work, so that neither can crowd out the other. What an operator needs to see or to stop a crowded node is not counted: operations
 * that any node answers in any state (`here`), the step-down, and, on another port, metrics and health.
 */
export class Limits {
  readonly reads: WorkLimit;
  readonly changes: WorkLimit;
  readonly bodies: BodyMemory;

  constructor({ reads, changes, waiting, body_memory }: LimitsConfig) {
    this.reads = new WorkLimit({ atOnceMax: reads, waitingMax: waiting });
    this.changes = new WorkLimit({ atOnceMax: changes, waitingMax: waiting });
    this.bodies = new BodyMemory(body_memory);
  }

  /** What a request counts as; undefined for nothing. What takes minutes has bounds of its own, and would hold a place for as long. */
  workOf(
    { isSlow, endsLead, unaudited }: { readonly isSlow?: true; readonly endsLead?: true; readonly unaudited?: true },
    where: Where,
  ): WorkLimit | undefined {
    if (isSlow || endsLead || unaudited || where === 'here') return undefined;
    return where === 'leader' ? this.changes : this.reads;
  }
}
