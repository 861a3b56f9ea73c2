import type { NoncePool } from '../algorithms/nonce-pool.ts';
import type { KeyCache, LoadedKey, LoadedVersion } from '../keys/key-cache.ts';
import type { ManagedKeys } from '../managed/provider.ts';
import { type BatchReply, type ItemMembers, parseBatch, runBatch } from './batch.ts';

/** What an operation works with besides the key. */
export interface Tools {
  readonly keys: Pick<KeyCache, 'assertOpen' | 'loadVersion'>;
  readonly nonces: NoncePool;
  /** Keys that other systems hold. */
  readonly managedKeys: Pick<ManagedKeys, 'find'>;
  /** First part of the mount's ciphertext strings. */
  readonly prefix: string;
}

/** What every item has. */
export interface Item {
  /** Empty when absent. Comes back with the item's result; batches only. */
  readonly reference: string;
}

/** A data operation: how an item of a batch is read, and what is done with one item under one state of a key. */
export interface Operation<I extends Item, R> {
  readonly read: (members: ItemMembers) => I;
  /** @param index - the item's place in the batch, 0 without one; some error texts name it */
  readonly run: (tools: Tools, key: LoadedKey, item: I, index: number) => Promise<R>;
}

/** A request taken apart: one item, or those of a batch. */
export type Work<I> = { readonly item: I } | { readonly items: readonly I[] };

/** @throws TransitError `invalid_request` */
export const batchOf = async <I extends Item, R>(
  { read }: Pick<Operation<I, R>, 'read'>,
  batchInput: unknown,
): Promise<{ readonly items: readonly I[] }> => ({ items: await parseBatch(batchInput, read) });

/**
 * Does all the work under one state of the key.
 * @throws TransitError when the one item of a request without a batch is refused
 * @throws StoreError `sealed` when the keys were closed on the way
 */
export async function perform<I extends Item, R>(
  operation: Pick<Operation<I, R>, 'run'>,
  tools: Tools,
  key: LoadedKey,
  work: Work<I>,
): Promise<R | BatchReply<R>> {
  const run = (item: I, index: number): Promise<R> => operation.run(tools, key, item, index);
  const assertOpen = (): void => tools.keys.assertOpen();
  const reply = 'item' in work ? await run(work.item, 0) : await runBatch(work.items, run, assertOpen);
  assertOpen();
  return reply;
}

/** A version's handles, from the key or from the store. Only the second takes a wait worth the name. */
export const versionOf = ({ keys }: Tools, key: LoadedKey, version: number): LoadedVersion | Promise<LoadedVersion> =>
  key.versions.get(version) ?? keys.loadVersion(key, version);
