import type { Store } from '@transitd/storage-fsm';
import { accessorIdOf } from './token-key.ts';
import { childPrefix, childrenOf, duePrefix, parseChildPath, parseDuePath, tokenPath } from './token-paths.ts';
import { decodeTokenRecord } from './token-record.ts';
import { deleteTransaction, together } from './token-transactions.ts';

/**
 * Deletes tokens whose time has come, the longest overdue first. They are refused without it: this clears away.
 * @returns how many
 */
export async function sweepOverdue(
  store: Store,
  { key, now, limit }: { readonly key: Uint8Array; readonly now: number; readonly limit: number },
): Promise<number> {
  const { records } = await store.range({ prefix: duePrefix, limit });
  const due = records.map(({ path }) => parseDuePath(path)).filter(({ expiresMs }) => expiresMs <= now);
  return deleteTokens(
    store,
    key,
    due.map(({ id }) => id),
  );
}

/**
 * Goes on with deleting tokens whose parent is gone: from parent to parent, by the records alone, so a crash loses nothing of
 * its task. What it deletes may be a parent itself, and is met again on the next round.
 * @param cursor - where it stopped; empty for the beginning
 */
export async function sweepOrphaned(
  store: Store,
  { key, cursor, limit }: { readonly key: Uint8Array; readonly cursor: string; readonly limit: number },
): Promise<{ readonly cursor: string; readonly removed: number }> {
  let [at, removed] = [cursor, 0];
  for (let work = 0; work < limit; work += 1) {
    const { records } = await store.range({ prefix: childPrefix, limit: 1, ...(at !== '' && { after: at }) });
    const first = records[0];
    if (first === undefined) return { cursor: '', removed };
    const { parent } = parseChildPath(first.path);
    // Behind every child of this parent, and before those of the next one.
    const behind = `${childrenOf(parent)}~`;
    if ((await store.get(tokenPath(parent))) !== undefined) {
      at = behind;
      continue;
    }
    const children = await store.range({ prefix: childrenOf(parent), limit: limit - work });
    const ids = children.records.map(({ path }) => parseChildPath(path).child);
    const deleted = await deleteTokens(store, key, ids);
    removed += deleted;
    work += ids.length;
    // Someone was faster: that is for the next round.
    if (deleted === 0) at = behind;
  }
  return { cursor: at, removed };
}

/** Deletes those that are there, all or none. @returns how many */
async function deleteTokens(store: Store, key: Uint8Array, ids: readonly string[]): Promise<number> {
  const transactions = [];
  for (const id of ids) {
    const stored = await store.get(tokenPath(id));
    if (stored === undefined) continue;
    const record = decodeTokenRecord(stored.value);
    transactions.push(
      deleteTransaction({ id, record, revision: stored.revision, accessorId: accessorIdOf(key, record.accessor) }),
    );
  }
  if (transactions.length === 0) return 0;
  const { outcome } = await store.commit(together(transactions));
  return outcome === 'committed' ? transactions.length : 0;
}
