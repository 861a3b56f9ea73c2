import type { NoncePool } from '../algorithms/nonce-pool.ts';
import { type KeyCache, type LoadedKey, VersionGone } from '../keys/key-cache.ts';
import { apiNameOf, type KeyType } from '../keys/key-type.ts';
import type { GenerationObserver } from '../keys/new-version.ts';
import type { ManagedKeys } from '../managed/provider.ts';
import { TransitError } from '../values/errors.ts';
import { type BatchReply, checkContexts, type ItemMembers, parseBatch, runItems } from './batch.ts';

/** Reports when keys are used, and when their material is generated. */
export interface UseObserver extends GenerationObserver {
  /** Called before `items` inputs are processed with one key. Returns a function to call afterwards, with whether it failed. */
  began(items: number): ((failed: boolean) => void) | undefined;
}

/** The dependencies of an operation besides the key. */
export interface Tools {
  readonly keys: Pick<KeyCache, 'assertOpen' | 'cached' | 'key' | 'loadVersion'>;
  readonly nonces: NoncePool;
  /** Keys held by other systems. */
  readonly managedKeys: Pick<ManagedKeys, 'find'>;
  /** First part of the mount's ciphertext strings. */
  readonly prefix: string;
  /** Absent if nobody wants to know. */
  readonly observer?: UseObserver | undefined;
}

/** Fields of every item. */
export interface Item {
  /** The item's `reference`, which is returned with its result; batches only. Empty when absent. */
  readonly reference: string;
}

/** The members of a request for one input, each optional, or `batchInput`, which is JSON of any form. Null counts as absent. */
export type RequestOf<I> = { readonly [Member in keyof Omit<I, 'reference'>]?: I[Member] | undefined } & {
  readonly batchInput?: unknown;
};

/** The input of a request: one item, or the items of a batch. */
export type Work<I> = { readonly item: I } | { readonly items: readonly I[] };

/** Reading a batch yields to the event loop, so it returns a promise. Reading a single item does not. */
export type PendingWork<I> = Work<I> | Promise<Work<I>>;

/** An operation with a key. */
export interface Operation<Request, I extends Item, R extends object> {
  readonly name: string;
  /** Reads the input of a request. @throws TransitError `invalid_request` */
  readonly workOf: (request: Request) => PendingWork<I>;
  /** Processes one item. @param index - position in the batch, 0 without one; some error texts contain it */
  readonly run: (tools: Tools, key: LoadedKey, item: I, index: number) => R | Promise<R>;
}

/**
 * Maximum number of attempts. An operation starts over with the changed key when a concurrent change has deleted a version that it needs.
 */
const attemptsMax = 5;

/**
 * Performs an operation under an existing key. All items are processed under the same state of the key.
 * @param missing - makes the refusal for an unknown key name
 * @throws TransitError when a request without a batch is refused
 * @throws StoreError `sealed` when the keys are closed before the end
 */
export async function perform<Request, I extends Item, R extends object>(
  operation: Operation<Request, I, R>,
  tools: Tools,
  name: string,
  request: Request,
  missing: () => TransitError,
): Promise<R | BatchReply<R>> {
  const pending = operation.workOf(request);
  const work = pending instanceof Promise ? await pending : pending;
  return underKey(tools, name, (key) => runUnder(operation, tools, key, work), missing);
}

/** Calls `use` with the current state of a key, and again with a newer state if a version disappears meanwhile. */
export async function underKey<R>(
  { keys }: Pick<Tools, 'keys'>,
  name: string,
  use: (key: LoadedKey) => R | Promise<R>,
  missing: () => TransitError,
): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    const key = keys.cached(name) ?? (await keys.key(name));
    if (key === undefined) throw missing();
    try {
      const made = use(key);
      const reply = made instanceof Promise ? await made : made;
      keys.assertOpen();
      return reply;
    } catch (error) {
      if (!(error instanceof VersionGone) || attempt === attemptsMax) throw error;
    }
  }
}

/** Processes all items under one state of a key. The caller checks with `assertOpen` that the result may be returned. */
export function runUnder<I extends Item, R extends object>(
  { run }: Pick<Operation<never, I, R>, 'run'>,
  tools: Tools,
  key: LoadedKey,
  work: Work<I>,
): R | BatchReply<R> | Promise<R | BatchReply<R>> {
  return observed<R | BatchReply<R>>(tools, 'item' in work ? 1 : work.items.length, () => {
    if ('item' in work) return run(tools, key, work.item, 0);
    const { items } = work;
    checkItems(key.type, items.length);
    return runItems<I, R>(items, {
      operation: (item, index) => run(tools, key, item, index),
      onResume: () => tools.keys.assertOpen(),
    });
  });
}

/** @throws TransitError `invalid_request` for more items than a batch may have under a key of this type */
function checkItems(type: KeyType, count: number): void {
  const { batchItemsMax = count } = type;
  if (count <= batchItemsMax) return;
  const refusal = `batch input holds more than ${batchItemsMax} items, the most for a key of type ${apiNameOf(type)}`;
  throw new TransitError('invalid_request', refusal);
}

/** Reports the beginning and the end of `use` to the observer, if there is one. */
export function observed<R>({ observer }: Pick<Tools, 'observer'>, items: number, use: () => R | Promise<R>): R | Promise<R> {
  const ended = observer?.began(items);
  if (ended === undefined) return use();
  let made: R | Promise<R>;
  try {
    made = use();
  } catch (error) {
    ended(true);
    throw error;
  }
  if (!(made instanceof Promise)) {
    ended(false);
    return made;
  }
  made.then(
    () => ended(false),
    () => ended(true),
  );
  return made;
}

export const isBatch = ({ batchInput }: { readonly batchInput?: unknown }): boolean =>
  batchInput !== undefined && batchInput !== null;

/** @throws TransitError `invalid_request` */
export const batchOf = async <I extends Item>(
  read: (members: ItemMembers) => I,
  { batchInput }: { readonly batchInput?: unknown },
): Promise<{ readonly items: readonly I[] }> => ({ items: await parseBatch(batchInput, read) });

/** Reads a batch whose items either all have a context or all have none. @throws TransitError `invalid_request` */
export async function batchWithContexts<I extends Item & { readonly context: string }>(
  read: (members: ItemMembers) => I,
  request: { readonly batchInput?: unknown },
): Promise<Work<I>> {
  const work = await batchOf(read, request);
  checkContexts(work.items);
  return work;
}
