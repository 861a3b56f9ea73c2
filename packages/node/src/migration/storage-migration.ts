import { randomUUID } from 'node:crypto';
import { sealRecordPaths } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import { StartError } from '@transitd/process';
import {
  type FeatureLevel,
  inspectSnapshot,
  recordsOfSnapshot,
  restorableTotals,
  supportedLevels,
  takesPart,
} from '@transitd/storage-fsm';
import { etcdSource, etcdTarget } from './etcd-side.ts';
import type { MigrationSource, MigrationTarget, OpenRecords } from './migration-sides.ts';
import { raftSource, raftTarget } from './raft-side.ts';

interface MigrationOptions {
  /** The configuration of a node of the cluster as it is. */
  readonly from: Config;
  /** The configuration of a node of the cluster as it will be. */
  readonly to: Config;
  /** Checks everything that can be checked without writing. */
  readonly dryRun: boolean;
  readonly onProgress: (records: number, of: number) => void;
}

export interface MigrationReport {
  readonly records: number;
  /** Sum over all records, hexadecimal. */
  readonly digest: string;
  readonly level: FeatureLevel;
  /** Of the newest commit of the source: it shows which of several data directories is the newest. */
  readonly term: number;
  readonly index: number;
}

/**
 * Moves the records of a cluster to the other engine, while no node runs. The source is not changed. The records of the target take effect
 * by one last write, and are then read back and compared.
 * @throws StartError with one sentence for the operator; StorageDamaged, StorageFailed
 */
export async function migrateStorage({ from, to, dryRun, onProgress }: MigrationOptions): Promise<MigrationReport> {
  const { type } = from.storage;
  if (type === to.storage.type)
    throw new StartError(`both configurations have storage.type ${type}: a migration moves a cluster to the other engine`);
  return withSource(from, ({ position, stream: open }) =>
    withTarget(to, async (target) => {
      await target.requireEmpty();
      const level = await requireUsable(open);
      const { records, digest } = await restorableTotals(open(), target.drops);
      if (!dryRun) {
        const progress = (written: number): void => onProgress(written, records);
        await target.fill({ open, level, attempt: randomUUID(), onProgress: progress });
        const found = await target.read((read) => restorableTotals(read(), target.drops));
        if (found.records !== records || found.digest !== digest)
          throw new StartError(
            `the target has other records than the source (${found.records} instead of ${records}): do not use it, and delete it`,
          );
      }
      return { records, digest: digest.toString(16).padStart(64, '0'), level, ...position };
    }),
  );
}

const withSource = <T>(config: Config, use: (source: MigrationSource) => Promise<T>): Promise<T> =>
  config.storage.type === 'etcd' ? etcdSource(config.storage, use) : raftSource(config, use);

const withTarget = <T>(config: Config, use: (target: MigrationTarget) => Promise<T>): Promise<T> =>
  config.storage.type === 'etcd' ? etcdTarget(config.storage, use) : raftTarget(config, use);

/** Requires that the source is a whole cluster, which each engine can have. @returns its feature level @throws StartError, CodecError */
async function requireUsable(open: OpenRecords): Promise<FeatureLevel> {
  const { level, replication } = await inspectSnapshot(open());
  if (takesPart(replication))
    throw new StartError('the cluster belongs to a replication set: disable replication before you move it');
  if (level > supportedLevels.newest)
    throw new StartError(`the cluster is at feature level ${level}, and this program supports up to ${supportedLevels.newest}`);
  const found = await recordsOfSnapshot(open(), sealRecordPaths);
  if (found.size < sealRecordPaths.length)
    throw new StartError('the source has no seal or no keyring: it is not an initialized cluster');
  return level;
}
