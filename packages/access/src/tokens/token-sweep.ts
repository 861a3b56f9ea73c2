import type { Store } from '@transitd/storage-fsm';
import { AccessError } from '../errors.ts';
import { authMountPath, decodeAuthMount, parseMountReference } from '../mounts/auth-mount.ts';
import { accessorIdOf } from './token.ts';
import { accessorPath, childPrefix, childrenOf, duePrefix, parseChildPath, parseDuePath, tokenPath } from './token-paths.ts';
import { decodeTokenRecord, type TokenRecord } from './token-record.ts';
import { combined, deleteTransaction } from './token-transactions.ts';

/** What became of a piece of clearing. */
export interface SweepResult {
  /** Tokens deleted. */
  readonly removed: number;
  /** Tokens left where they are: their records are of a format that this version does not know. */
  readonly unreadable: number;
}

interface SweepOptions {
  readonly key: Uint8Array;
  /** Where the one before stopped; empty for the beginning. */
  readonly cursor: string;
  readonly limit: number;
}

/** Deletes tokens whose time has come, the longest overdue first. They are refused without it: this clears away. */
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
  // One that stays must not hold up those behind it.
  return { ...swept, cursor: due.length < limit ? '' : (due.at(-1)?.path ?? '') };
}

/**
 * Goes on with deleting tokens whose parent is gone: from parent to parent, by the records alone, so a crash loses nothing of
 * its task. What it deletes may be a parent itself, and is met again on the next round.
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
    // Behind every child of this parent, and before those of the next one.
    const behind = `${childrenOf(parentAccessorId)}~`;
    if (await parentExists(store, parentAccessorId)) {
      at = behind;
      continue;
    }
    const prefix = childrenOf(parentAccessorId);
    const children = await store.range({ prefix, limit: limit - work, ...(at.startsWith(prefix) && { after: at }) });
    const ids = children.records.map(({ path }) => parseChildPath(path).child);
    const deleted = await deleteTokens(store, key, ids);
    removed += deleted.removed;
    unreadable += deleted.unreadable;
    work += ids.length;
    // Someone was faster, or none can be read: that is for the next round.
    if (deleted.removed === 0) at = children.records.at(-1)?.path ?? at;
  }
  return { cursor: at, removed, unreadable };
}

/** Whether the parent is, or the login method that stands in a parent's place (no accessor's hash has a colon). */
async function parentExists(store: Store, parent: string): Promise<boolean> {
  if (!parent.includes(':')) return (await store.get(accessorPath(parent))) !== undefined;
  const { path, id } = parseMountReference(parent);
  const stored = await store.get(authMountPath(path));
  return stored !== undefined && decodeAuthMount(stored.value).id === id;
}

/** Deletes those that are there and can be read, all or none. */
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
