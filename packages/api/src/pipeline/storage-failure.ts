import { StorageDamaged, StorageFailed, StoreError } from '@transitd/storage-fsm';

/**
 * Returns the refusal for an error of this node's storage, and any other error itself. Storage fails while a request runs when the disk
 * fails, or when the node stops before the request has ended; the process ends a moment later in both cases.
 * @param changes - whether the request may already have changed something
 */
export function storageRefusal(error: unknown, { changes }: { readonly changes: boolean }): unknown {
  if (!(error instanceof StorageFailed || error instanceof StorageDamaged)) return error;
  return changes
    ? new StoreError('outcome_unknown', 'the storage of this node failed or was closed while the request ran', { cause: error })
    : new StoreError('stopped', 'this node is stopping: its storage has failed or is closed', { cause: error });
}
