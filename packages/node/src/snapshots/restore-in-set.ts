import { type Barrier, keyringPath } from '@transitd/barrier';
import { SnapshotError } from '@transitd/snapshot-archive';
import {
  type CommitResult,
  type RestorableTotals,
  type RestoreOutcome,
  readSnapshotFile,
  recordsOfSnapshot,
  restoreSnapshot,
  StoreError,
} from '@transitd/storage-fsm';
import type { ReplicationSet, SnapshotEngine } from './snapshot-engine.ts';

/** How often the records that a restore keeps may change while it ends. */
const attemptsMax = 8;

/** @throws SnapshotError unless the cluster, if it is in a replication set, is the primary */
export function requirePrimary(set: ReplicationSet | undefined): void {
  if (set !== undefined && set.state.role !== 'primary')
    throw new SnapshotError(
      'not_restorable',
      'only the primary of a replication set can be restored: its secondaries receive the restored state',
    );
}

/**
 * Returns the keyring of a backup that a replication set can restore: the present root key opens it, so every cluster of the set can be
 * unsealed with the restored state as with the present one.
 * @throws SnapshotError
 */
export async function keyringForSet(path: string, { transfer }: Pick<Barrier, 'transfer'>): Promise<Uint8Array> {
  const keyring = (await recordsOfSnapshot(readSnapshotFile(path), [keyringPath])).get(keyringPath);
  if (keyring === undefined || !transfer.opens(keyring))
    throw new SnapshotError(
      'not_restorable',
      'this snapshot was made under another root key, so the secondaries could not be unsealed with it, and nothing was changed: ' +
        'to restore it, end the replication set and begin a new one',
    );
  return keyring;
}

/**
 * Restores a backup on the primary of a replication set. Its last entry keeps the local records and those of the set, under a new key of
 * the barrier. Each secondary then receives the whole state.
 * @param keyring - see {@link keyringForSet}
 * @throws as `restoreSnapshot` does; BarrierError
 */
export async function restoreInSet(
  { engine, barrier }: { readonly engine: SnapshotEngine; readonly barrier: Barrier },
  { path, attempt, keyring }: { readonly path: string; readonly attempt: string; readonly keyring: Uint8Array },
): Promise<RestoreOutcome> {
  const present = (): ReplicationSet => {
    const { set } = engine;
    requirePrimary(set);
    if (set === undefined) throw new StoreError('busy', 'the replication set was ended in the meantime: restore again');
    return set;
  };
  const { state, kept } = present();
  const { local } = state;
  const from = state.epochs.at(-1);
  if (from === undefined) throw new TypeError('a primary has an epoch');
  const replace = async (staged: RestorableTotals): Promise<CommitResult> => {
    for (let tries = 1; ; tries += 1) {
      const { appliedIndex: localReadAt } = present();
      const keys = await barrier.transfer.keysForRestore(keyring, { local, kept });
      const step = { kind: 'restore', from, attempt, ...staged, ...keys, localReadAt } as const;
      const result = await engine.replica.commit({ conditions: [], writes: [], replication: step });
      // A conflict: one of the kept records has changed since it was read, or the attempt has ended.
      if (result.outcome === 'committed' || tries === attemptsMax) return result;
    }
  };
  return restoreSnapshot(engine.replica, () => readSnapshotFile(path), { attempt, keep: local, replace });
}
