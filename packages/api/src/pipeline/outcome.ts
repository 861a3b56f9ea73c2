import { LeadershipTransferred } from '@transitd/cluster';
import { type Reply, withoutWarnings } from '@transitd/http';
import type { Term } from '@transitd/raft-core';
import { StorageDamaged, StorageFailed, StoreError } from '@transitd/storage-fsm';

/** How a request ends on this node. A stage returns an outcome to end the request, or any other value to pass it to the next stage. */
export type Outcome = Replied | Refused | ForwardToActive | Transferred;

export interface Replied {
  readonly kind: 'replied';
  readonly reply: Reply;
}

/** A refusal or an internal error. */
export interface Refused {
  readonly kind: 'refused';
  readonly error: unknown;
  /** About the members of the request. */
  readonly warnings: readonly string[];
}

/** The active node has to answer. */
export interface ForwardToActive {
  readonly kind: 'forward';
  /** Undefined if the body has not been read. */
  readonly body: Buffer | undefined;
  /** ID of the caller's token; undefined if this node could not authenticate it. */
  readonly tokenId: string | undefined;
}

/** The request made this node give up leadership. Nothing else was done, so the next leader has to answer. */
interface Transferred {
  readonly kind: 'transferred';
  /** The term in which this node was the leader. */
  readonly term: Term;
}

export const isOutcome = (value: object): value is Outcome => 'kind' in value;

export const replied = (reply: Reply): Replied => ({ kind: 'replied', reply });
export const refusedWith = (error: unknown, warnings: readonly string[] = []): Refused => ({ kind: 'refused', error, warnings });
export const forwardToActive = (body: Buffer | undefined, tokenId?: string): ForwardToActive => ({
  kind: 'forward',
  body,
  tokenId,
});

/**
 * Returns the outcome for an error that a stage or an operation threw.
 * @param execution - whether the request may have changed something, if it was being executed; see {@link storageRefusal}
 */
export function outcomeOf(thrown: unknown, execution?: { readonly changes: boolean }): Transferred | Refused {
  const { failure, warnings } = withoutWarnings(thrown);
  const error = execution === undefined ? failure : storageRefusal(failure, execution);
  return error instanceof LeadershipTransferred ? { kind: 'transferred', term: error.term } : refusedWith(error, warnings);
}

/**
 * Returns the refusal for an error of this node's storage, and any other error itself. Storage fails while a request runs when the disk
 * fails, or when the node stops before the request has ended; the process ends a moment later in both cases.
 * @param changes - whether the request may already have changed something
 */
function storageRefusal(error: unknown, { changes }: { readonly changes: boolean }): unknown {
  if (!(error instanceof StorageFailed || error instanceof StorageDamaged)) return error;
  return changes
    ? new StoreError('outcome_unknown', 'the storage of this node failed or was closed while the request ran', { cause: error })
    : new StoreError('stopped', 'this node is stopping: its storage has failed or is closed', { cause: error });
}
