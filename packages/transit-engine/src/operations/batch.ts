import { TimeSlice } from '@transitd/event-loop';
import { TransitError, type TransitErrorCode } from '../values/errors.ts';

/** The result of one item of a batch. */
export type ItemResult<R> = (R | { readonly error: string }) & { readonly reference: string };

/** Results in the order of the items. */
export interface BatchReply<R> {
  readonly results: readonly ItemResult<R>[];
  readonly outcome: 'all_ok' | 'some_failed' | 'all_failed';
}

export const batchItemsMax = 100_000;

/**
 * Refusals that would meet every item: each would find the same type of key or the same algorithm, would wait for a managed key's system
 * again, or would find the same key unconfirmed.
 */
const wholeBatch: ReadonlySet<TransitErrorCode> = new Set(['not_supported', 'managed_key_unavailable', 'unconfirmed']);

/** @throws TransitError `invalid_request` for a number of items that no batch may have */
export function checkBatchLength(items: number): void {
  if (items === 0) throw new TransitError('invalid_request', 'missing batch input to process');
  if (items > batchItemsMax) {
    throw new TransitError('invalid_request', `batch input holds more than ${batchItemsMax} items`);
  }
}

/** How {@link runItems} processes each item. */
export interface ItemRun<I, R> {
  readonly operation: (item: I, index: number) => R | Promise<R>;
  /** Called after each yield; an error that it throws ends the batch. */
  readonly onResume: () => void;
}

/**
 * Runs an operation on all items. A refused item does not stop the others; any other error ends the batch. Yields to the event loop
 * when its slice is over.
 */
export async function runItems<I extends { readonly reference?: string | undefined }, R extends object>(
  items: readonly I[],
  { operation, onResume }: ItemRun<I, R>,
): Promise<BatchReply<R>> {
  const results: ItemResult<R>[] = [];
  const slice = new TimeSlice();
  let failures = 0;
  let index = -1;
  for (const item of items) {
    index += 1;
    if (slice.isOver) {
      await slice.next();
      onResume();
    }
    try {
      const made = operation(item, index);
      const result = made instanceof Promise ? await made : made;
      results.push({ ...result, reference: item.reference ?? '' });
    } catch (error) {
      if (!(error instanceof TransitError) || wholeBatch.has(error.code)) throw error;
      failures += 1;
      results.push({ error: error.message, reference: item.reference ?? '' });
    }
  }
  return { results, outcome: failures === 0 ? 'all_ok' : failures < results.length ? 'some_failed' : 'all_failed' };
}

/**
 * Checks that either all items have a context or none has, because the context decides whether a created key is derived.
 * @throws TransitError `invalid_request`
 */
export function checkContexts(items: readonly { readonly context?: string | undefined }[]): void {
  const withContext = items.filter(({ context = '' }) => context !== '').length;
  if (withContext !== 0 && withContext !== items.length) {
    throw new TransitError('invalid_request', 'context should be set either in all the request blocks or in none');
  }
}
