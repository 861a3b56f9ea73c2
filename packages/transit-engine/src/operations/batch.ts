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

/**
 * Reads `batch_input`, which may be any JSON.
 * @throws TransitError `invalid_request` for an error of the request as a whole
 */
export async function parseBatch<I>(input: unknown, read: (members: ItemMembers) => I): Promise<I[]> {
  if (!Array.isArray(input)) throw unparsable(`source data must be an array or slice, got ${kindOf(input)}`);
  if (input.length === 0) throw new TransitError('invalid_request', 'missing batch input to process');
  if (input.length > batchItemsMax) {
    throw new TransitError('invalid_request', `batch input holds more than ${batchItemsMax} items`);
  }
  const items: I[] = [];
  const slice = new TimeSlice();
  for (let index = 0; index < input.length; index += 1) {
    if (slice.isOver) await slice.next();
    const entry: unknown = input[index];
    items.push(read(new ItemMembers(entry, index)));
  }
  return items;
}

/**
 * Reads the members of one item and checks their types. As in a single request, null is the empty string for a text, and counts as absent
 * for a number.
 */
export class ItemMembers {
  readonly #entry: Readonly<Record<string, unknown>>;
  readonly #index: number;

  constructor(entry: unknown, index: number) {
    if (!isObject(entry)) throw unparsable(`[${index}] expected a map, got '${kindOf(entry)}'`);
    this.#entry = entry;
    this.#index = index;
  }

  /** A string, empty when absent. */
  text(name: string): string {
    const value = this.#entry[name] ?? '';
    return typeof value === 'string' ? value : this.#refuse(name, 'string', value);
  }

  /** A string, undefined when absent. */
  optionalText(name: string): string | undefined {
    const value = this.#entry[name];
    if (value === null) return '';
    return value === undefined || typeof value === 'string' ? value : this.#refuse(name, 'string', value);
  }

  /** An integer, 0 when absent. */
  integer(name: string): number {
    const value = this.#entry[name] ?? 0;
    return typeof value === 'number' && Number.isSafeInteger(value) ? value : this.#refuse(name, 'int', value);
  }

  #refuse(name: string, kind: string, value: unknown): never {
    throw unparsable(`'[${this.#index}].${name}' expected type '${kind}', got unconvertible type '${kindOf(value)}'`);
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
export async function runItems<I extends { readonly reference: string }, R extends object>(
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
      results.push({ ...result, reference: item.reference });
    } catch (error) {
      if (!(error instanceof TransitError) || wholeBatch.has(error.code)) throw error;
      failures += 1;
      results.push({ error: error.message, reference: item.reference });
    }
  }
  return { results, outcome: failures === 0 ? 'all_ok' : failures < results.length ? 'some_failed' : 'all_failed' };
}

/**
 * Checks that either all items have a context or none has, because the context decides whether a created key is derived.
 * @throws TransitError `invalid_request`
 */
export function checkContexts(items: readonly { readonly context: string }[]): void {
  const withContext = items.filter(({ context }) => context !== '').length;
  if (withContext !== 0 && withContext !== items.length) {
    throw new TransitError('invalid_request', 'context should be set either in all the request blocks or in none');
  }
}

const unparsable = (fault: string): TransitError => new TransitError('invalid_request', `failed to parse batch input: ${fault}`);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the name of a value's type for an error text. */
function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'object' ? 'map' : typeof value;
}
