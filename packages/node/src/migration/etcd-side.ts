import { reasonOf, StartError } from '@transitd/process';
import {
  CopyFault,
  type Etcd,
  EtcdError,
  EtcdReplica,
  type InspectedCluster,
  inspectCluster,
  positionOfCluster,
} from '@transitd/storage-etcd';
import { restoreSnapshot, StoreError, snapshotOfRecords, UnsupportedLevel } from '@transitd/storage-fsm';
import { type EtcdConfig, openEtcd } from '../etcd/open-etcd.ts';
import { newNodeId } from '../storage/data-directory.ts';
import type { MigrationSource, MigrationTarget, OpenRecords } from './migration-sides.ts';

/** A node that died holds the active role for less than this. */
const activeWithinMs = 15_000;

/** Reads the records below a prefix as of one revision. @throws StartError, also if a node has started meanwhile */
export const etcdSource = <T>(config: EtcdConfig, use: (source: MigrationSource) => Promise<T>): Promise<T> =>
  withEtcd(config, async (etcd) => {
    const found = await stopped(etcd, config);
    if (found.rows.length === 0) throw new StartError(`etcd has no records below ${config.prefix}: see storage.prefix`);
    const moved = await use({ position: { term: found.term, index: found.index }, stream: recordsOf(found) });
    const { index, runningNodes } = await positionOfCluster({ etcd, prefix: config.prefix });
    if (runningNodes > 0 || index !== found.index)
      throw new StartError(
        `a node of the cluster below ${config.prefix} in etcd has started meanwhile, so the target may lack its writes: ` +
          'stop all nodes, empty the target, and begin again',
      );
    return moved;
  });

/** Fills an empty prefix. @throws StartError */
export const etcdTarget = <T>(config: EtcdConfig, use: (target: MigrationTarget) => Promise<T>): Promise<T> =>
  withEtcd(config, (etcd) =>
    use({
      drops: [],
      requireEmpty: async () => {
        const { rows } = await stopped(etcd, config);
        if (rows.length > 0)
          throw new StartError(`etcd has ${rows.length} records below ${config.prefix}: use another storage.prefix`);
      },
      fill: ({ open, level, attempt, onProgress }) =>
        asActiveNode(etcd, config, async (replica) => {
          if (level > replica.featureLevel)
            throw new StartError(
              `the cluster is at feature level ${level}, and ${config.prefix} in etcd at ${replica.featureLevel}: use another storage.prefix`,
            );
          await restoreSnapshot(replica, open, { attempt, onProgress }).catch((error: unknown) => {
            throw error instanceof StoreError ? endedBy(error, config.prefix) : error;
          });
          await replica.clearRestores().catch(() => undefined); // the records are in effect, and the next active node tries it again
        }),
      read: async (check) => check(recordsOf(await stopped(etcd, config))),
    }),
  );

/** Returns the end of a migration by a failed commit, with what to do next. */
export function endedBy({ code, message }: StoreError, prefix: string): StartError {
  const next =
    code === 'outcome_unknown'
      ? `its last write may have taken effect below ${prefix} in etcd. Run it again, into another storage.prefix if it finds records there`
      : 'no record has taken effect. Run it again';
  return new StartError(`the migration has ended, and ${next}: ${message}`);
}

const recordsOf =
  (found: InspectedCluster): OpenRecords =>
  () =>
    snapshotOfRecords(found);

/** Reads the cluster. @throws StartError while a node runs */
async function stopped(etcd: Etcd, { prefix }: EtcdConfig): Promise<InspectedCluster> {
  const found = await inspectCluster({ etcd, prefix });
  if (found.runningNodes > 0)
    throw new StartError(
      `a node of the cluster below ${prefix} in etcd runs, or ended in the last seconds: stop all nodes, and try again`,
    );
  return found;
}

/** No node can become active meanwhile. */
async function asActiveNode(etcd: Etcd, { prefix }: EtcdConfig, use: (replica: EtcdReplica) => Promise<void>): Promise<void> {
  const replica = await EtcdReplica.open({ etcd, prefix, nodeId: newNodeId() });
  const late = AbortSignal.timeout(activeWithinMs);
  try {
    await Promise.race([
      replica.leads,
      new Promise((_, reject) =>
        late.addEventListener('abort', () =>
          reject(new StartError(`another node is active below ${prefix} in etcd: stop all nodes, and try again`)),
        ),
      ),
    ]);
    await use(replica);
  } finally {
    await replica.close();
  }
}

async function withEtcd<T>(config: EtcdConfig, use: (etcd: Etcd) => Promise<T>): Promise<T> {
  const etcd = await openEtcd(config);
  try {
    return await use(etcd);
  } catch (error) {
    if (error instanceof EtcdError || error instanceof CopyFault)
      throw new StartError(`storage: etcd at ${config.endpoints.join(', ')} cannot be used: ${reasonOf(error)}`);
    if (error instanceof UnsupportedLevel) throw new StartError(error.message);
    throw error;
  } finally {
    etcd.close();
  }
}
