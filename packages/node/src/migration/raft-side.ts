import { authorityPath, MemberEvents, type Storage } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import { noObserver, StartError } from '@transitd/process';
import {
  clearRestores,
  featureLevels,
  restoreSnapshot,
  StorageInUse,
  StoreError,
  withRecoveredState,
} from '@transitd/storage-fsm';
import { raftSnapshots } from '../snapshots/raft-snapshots.ts';
import { withRecovery } from '../snapshots/recovery.ts';
import { DataDirectory } from '../storage/data-directory.ts';
import type { MigrationSource, MigrationTarget } from './migration-sides.ts';

/** Reads the records from the data directory of a stopped node, with its whole log. @throws StartError, StorageDamaged, StorageFailed */
export const raftSource = <T>({ data_dir }: Config, use: (source: MigrationSource) => Promise<T>): Promise<T> =>
  withRecovery(data_dir, {}, ({ state, isMember, isOvertaken }) => {
    if (!isMember)
      throw new StartError(`the node of ${data_dir} was removed from its cluster: use the data directory of a member`);
    if (isOvertaken)
      throw new StartError(`${data_dir} was rolled back or copied, as another member has reported: use that of another member`);
    return use({ position: { term: state.term ?? 0, index: state.index }, stream: () => state.stream() });
  });

/** Creates a cluster of one node in an empty data directory. @throws StartError */
export async function raftTarget<T>(config: Config, use: (target: MigrationTarget) => Promise<T>): Promise<T> {
  const { data_dir } = config;
  return use({
    // Its nodes are other ones: they make an authority when they start.
    drops: [authorityPath],
    requireEmpty: () => inDirectory(data_dir, (directory) => requireEmpty(directory)),
    fill: ({ open, level, attempt, onProgress }) =>
      inDirectory(data_dir, async (directory) => {
        await requireEmpty(directory);
        await directory.bootstrapCluster();
        await withStorage(directory, config, async (storage) => {
          storage.driver.start();
          await storage.leads;
          if (level > featureLevels.initial) await storage.replica.commit({ raise: level });
          await restoreSnapshot(storage.replica, open, { attempt, keep: [authorityPath], onProgress });
          await clearRestores(storage.replica, storage.machine);
          await flushed(storage);
        });
      }),
    read: (check) => withRecoveredState(data_dir, {}, async (state) => check(() => state.stream())),
  });
}

/** @throws StartError that says how to go on; StorageFailed if the disk fails */
async function withStorage(directory: DataDirectory, { raft }: Config, use: (storage: Storage) => Promise<void>): Promise<void> {
  const { promise: failing, reject } = Promise.withResolvers<never>();
  const storage = await directory.openStorage({
    ...{ raft, observer: noObserver, events: new MemberEvents() },
    onFatal: reject,
  });
  try {
    await Promise.race([use(storage), failing]);
    await storage.stop();
  } catch (error) {
    await storage.stop().catch(() => undefined); // the first error is the cause
    await Promise.race([failing, undefined]); // a failure of the disk explains all other errors
    if (!(error instanceof StoreError)) throw error;
    throw new StartError(`the migration has ended: empty ${directory.path}, and run it again: ${error.message}`);
  }
}

/** Waits until the records are on the disk. @throws StoreError */
async function flushed(storage: Storage): Promise<void> {
  await raftSnapshots(storage, []).backup();
}

async function requireEmpty(directory: DataDirectory): Promise<void> {
  if (await directory.holdsNode())
    throw new StartError(
      `${directory.path} holds a node already: use an empty data_dir; if a migration to it was interrupted, delete its content`,
    );
}

async function inDirectory<T>(path: string, use: (directory: DataDirectory) => Promise<T>): Promise<T> {
  let directory: DataDirectory;
  try {
    directory = await DataDirectory.open(path);
  } catch (error) {
    if (error instanceof StorageInUse) throw new StartError(`${error.message}: stop the node first`);
    throw error;
  }
  try {
    return await use(directory);
  } finally {
    await directory.close();
  }
}
