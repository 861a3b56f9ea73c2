import { Barrier, type OnSealWritten } from '@transitd/barrier';
import type { Replica } from '@transitd/storage-fsm';
import type { ClusterMemberParts } from './cluster-member.ts';

export type BarrierParts = Pick<ClusterMemberParts, 'seal' | 'log' | 'clock' | 'nodeSeal' | 'serviceLoader' | 'gateways'> & {
  readonly config: Pick<ClusterMemberParts['config'], 'barrier_rotation'>;
};

/**
 * Opens the barrier over the records of a replica. The seal and the services of the node follow it, and its gateways get its keys.
 * @param witnessPath - see `BarrierOptions`; on Raft only
 */
export async function openBarrier(
  { config, seal, log, clock, nodeSeal, serviceLoader, gateways }: BarrierParts,
  replica: Replica,
  witnessPath?: string,
): Promise<Barrier> {
  const { max_operations: maxOperations, interval: intervalMs } = config.barrier_rotation;
  const barrier = await Barrier.open({
    store: replica,
    seal,
    valuesWritten: () => replica.status().valuesWritten,
    now: clock.dueNow,
    rotation: { enabled: true, maxOperations, intervalMs },
    onSealWritten: (change) => log.info({ seal: seal.type }, sealWritten[change]),
    ...(witnessPath !== undefined && { witnessPath }),
  });
  nodeSeal().follow(barrier); // first, so that the node is known to reopen when its services are closed
  serviceLoader.follow(barrier);
  gateways?.opened(replica, barrier);
  return barrier;
}

/** In the log of the node that wrote the seal, whether a task of the active node or the unseal of the node led to it. */
const sealWritten: Readonly<Record<Parameters<OnSealWritten>[0], string>> = {
  rewrapped: 'wrapped the root key under the present seal key',
  migrated: 'migrated the seal',
};
