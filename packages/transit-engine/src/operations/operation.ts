import type { NoncePool } from '../algorithms/nonce-pool.ts';
import { type KeyCache, type LoadedKey, VersionGone } from '../keys/key-cache.ts';
import { checkNotDeleted } from '../keys/key-record.ts';
import { apiNameOf, type KeyType } from '../keys/key-type.ts';
import type { GenerationObserver } from '../keys/new-version.ts';
import type { UseTally } from '../keys/use-tally.ts';
import type { ManagedKeys } from '../managed/provider.ts';
import { TransitError } from '../values/errors.ts';
import { type BatchReply, checkContexts, runItems } from './batch.ts';

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
  /** Counts the uses of one request; absent if nobody counts them. */
  readonly tally?: UseTally | undefined;
}

/** Returns the tools for one request, whose uses this tally counts. */
export const counting = (tools: Tools, tally: UseTally | undefined): Tools => (tally === undefined ? tools : { ...tools, tally });

/** One input of an operation. Texts are base64 if nothing else is said. An absent text is empty, an absent number 0. */
export interface Item {
  /** Returned with the result of this item; batches only. */
  readonly reference?: string | undefined;
}

/** A single input, or the items of a batch. Beside items, the members of the single input do not count. */
export type RequestOf<I extends Item> = I & { readonly items?: readonly I[] | undefined };

/** An operation with a key. */
export interface Operation<Request extends RequestOf<I>, I extends Item, Shared, R extends object> {
  readonly name: string;
  /** Checks the request as a whole, and returns what all its items share. @throws TransitError `invalid_request` */
  readonly shared: (request: Request) => Shared;
  /** Processes one item. @param index - position in the batch, 0 without one; some error texts contain it */
  readonly run: (tools: Tools, key: LoadedKey, item: I, shared: Shared, index: number) => R | Promise<R>;
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
export async function perform<Request extends RequestOf<I>, I extends Item, Shared, R extends object>(
  operation: Operation<Request, I, Shared, R>,
  tools: Tools,
  name: string,
  request: Request,
  missing: () => TransitError,
): Promise<R | BatchReply<R>> {
  const shared = operation.shared(request);
  return underKey(tools, name, (key) => runUnder(operation, tools, key, request, shared), missing);
}

/** Calls `use` with the current state of a key, and again with a newer state if a version disappears meanwhile. */
export async function underKey<R>(
  { keys, tally }: Pick<Tools, 'keys' | 'tally'>,
  name: string,
  use: (key: LoadedKey) => R | Promise<R>,
  missing: () => TransitError,
): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    const key = keys.cached(name) ?? (await keys.key(name));
    if (key === undefined) throw missing();
    checkNotDeleted(key.record);
    tally?.begin(key);
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
export function runUnder<Request extends RequestOf<I>, I extends Item, Shared, R extends object>(
  { run }: Pick<Operation<Request, I, Shared, R>, 'run'>,
  tools: Tools,
  key: LoadedKey,
  request: Request,
  shared: Shared,
): R | BatchReply<R> | Promise<R | BatchReply<R>> {
  const { items } = request;
  return observed<R | BatchReply<R>>(tools, items?.length ?? 1, () => {
    if (items === undefined) return run(tools, key, request, shared, 0);
    checkItems(key.type, items.length);
    return runItems<I, R>(items, {
      operation: (item, index) => run(tools, key, item, shared, index),
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

/**
 * Checks the inputs of an operation whose items either all have a context or all have none.
 * @param missing - the refusal of a single input without the member that every input needs
 * @throws TransitError `invalid_request`
 */
export function checkInputs<I extends Item & { readonly context?: string | undefined }>(
  request: RequestOf<I>,
  hasInput: boolean,
  missing: string,
): void {
  if (request.items !== undefined) checkContexts(request.items);
  else if (!hasInput) throw new TransitError('invalid_request', missing);
}
