import type { LogIndex } from '@transitd/raft-core';
import { type Store, StoreError, type Write } from '@transitd/storage-fsm';

/**
 * Writes one local record. With a revision, only if the record still has it; 0 means that no record exists.
 * @returns the new revision; undefined if the record has another revision
 * @throws StoreError `busy` if an unconditional write was overtaken, so nothing was written
 */
export async function writeLocal(store: Pick<Store, 'commit'>, write: Write): Promise<LogIndex>;
export async function writeLocal(store: Pick<Store, 'commit'>, write: Write, revision: LogIndex): Promise<LogIndex | undefined>;
export async function writeLocal(store: Pick<Store, 'commit'>, write: Write, revision?: LogIndex): Promise<LogIndex | undefined> {
  const conditions = revision === undefined ? [] : [{ path: write.path, revision }];
  const result = await store.commit({ conditions, writes: [write] });
  if (result.outcome === 'committed') return result.revision;
  // Each write depends on the keyring, which may have changed too often.
  if (revision === undefined) throw new StoreError('busy', 'the keyring changes too often: try again');
  return undefined;
}
