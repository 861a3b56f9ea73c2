import type { Store } from '@transitd/storage-fsm';
import { authMountPath, decodeAuthMount, parseMountReference } from '../mounts/auth-mount.ts';
import { AccessError } from '../values/errors.ts';
import { accessorIdOf } from './token.ts';
import { accessorPath, childPrefix, childrenOf, duePrefix, parseChildPath, parseDuePath, tokenPath } from './token-paths.ts';
import { decodeTokenRecord, type TokenRecord } from './token-record.ts';
import { combined, deleteTransaction } from './token-transactions.ts';

/** Result of one sweep step. */
export interface SweepResult {
  /** Tokens deleted. */
  readonly removed: number;
  /** Tokens that were not deleted, since this version does not know the format of their records. */
  readonly unreadable: number;
}

interface SweepOptions {
  readonly key: Uint8Array;
  /** Path where the previous step stopped; empty to start over. */
  readonly cursor: string;
  readonly limit: number;
}

/** Deletes the records of expired tokens, oldest first. Expired tokens are refused anyway; this frees space. */
export async function sweepOverdue(
  store: Store,
  { key, now, cursor, limit }: SweepOptions & { readonly now: number },
): Promise<SweepResult & { readonly cursor: string }> {
  const { records } = await store.range({ prefix: duePrefix, limit, ...(cursor !== '' && { after: cursor }) });
  const due = records.filter(({ path }) => parseDuePath(path).expiresMs <= now);
  const swept = await deleteTokens(
    store,
    key,
    due.map(({ path }) => parseDuePath(path).id),
  );
  // A token that could not be deleted must not block the ones after it.
  return { ...swept, cursor: due.length < limit ? '' : (due.at(-1)?.path ?? '') };
}

/**
 * Deletes tokens whose parent no longer exists, parent by parent. It needs no state besides the records, so a crash loses no work.
 * A deleted token may be a parent itself; a later round deletes its children.
 */
export async function sweepOrphaned(
  store: Store,
  { key, cursor, limit }: SweepOptions,
): Promise<SweepResult & { readonly cursor: string }> {
  let [at, removed, unreadable] = [cursor, 0, 0];
  for (let work = 0; work < limit; work += 1) {
    const { records } = await store.range({ prefix: childPrefix, limit: 1, ...(at !== '' && { after: at }) });
    const first = records[0];
    if (first === undefined) return { cursor: '', removed, unreadable };
    const { parentAccessorId } = parseChildPath(first.path);
    // A path after all children of this parent and before the children of the next parent.
    const afterChildren = `${childrenOf(parentAccessorId)}~`;
    if (await parentExists(store, parentAccessorId)) {
      at = afterChildren;
      continue;
    }
    const prefix = childrenOf(parentAccessorId);
    const children = await store.range({ prefix, limit: limit - work, ...(at.startsWith(prefix) && { after: at }) });
    const ids = children.records.map(({ path }) => parseChildPath(path).child);
    const deleted = await deleteTokens(store, key, ids);
    removed += deleted.removed;
    unreadable += deleted.unreadable;
    work += ids.length;
    // Another write won, or no record is readable: leave these tokens to the next round.
    if (deleted.removed === 0) at = children.records.at(-1)?.path ?? at;
  }
  return { cursor: at, removed, unreadable };
}

/**
 * Returns whether a parent exists: a token or, for tokens of logins, an auth method. Only references to methods contain a colon.
 */
async function parentExists(store: Store, parent: string): Promise<boolean> {
  if (!parent.includes(':')) return (await store.get(accessorPath(parent))) !== undefined;
  const { path, id } = parseMountReference(parent);
  const stored = await store.get(authMountPath(path));
  return stored !== undefined && decodeAuthMount(stored.value).id === id;
}

/** Deletes the tokens that exist and can be read, in one transaction. */
async function deleteTokens(store: Store, key: Uint8Array, ids: readonly string[]): Promise<SweepResult> {
  const transactions = [];
  let unreadable = 0;
  for (const id of ids) {
    const stored = await store.get(tokenPath(id));
    if (stored === undefined) continue;
    const record = decodeIfReadable(stored.value);
    if (record === undefined) {
      unreadable += 1;
      continue;
    }
    transactions.push(
      deleteTransaction({ id, record, revision: stored.revision, accessorId: accessorIdOf(key, record.accessor) }),
    );
  }
  if (transactions.length === 0) return { removed: 0, unreadable };
  const { outcome } = await store.commit(combined(transactions));
  return { removed: outcome === 'committed' ? transactions.length : 0, unreadable };
}

function decodeIfReadable(stored: Uint8Array): TokenRecord | undefined {
  try {
    return decodeTokenRecord(stored);
  } catch (error) {
    if (error instanceof AccessError) return undefined;
    throw error;
  }
}
