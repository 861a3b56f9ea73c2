import { Barrier, type OnSealWritten, type SealConfig } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import type { Logger } from '@transitd/process';
import type { Replica } from '@transitd/storage-fsm';
import type { NodeClock } from './clock/node-clock.ts';
import type { GatewayHost } from './gateway-host.ts';
import type { NodeSeal } from './node-seal.ts';
import type { ServiceLoader } from './service-loader.ts';

export interface BarrierParts {
  readonly config: Pick<Config, 'barrier_rotation'>;
  readonly seal: SealConfig;
  readonly log: Logger;
  readonly clock: NodeClock;
  readonly nodeSeal: () => Pick<NodeSeal, 'follow' | 'reopeningForMs'>;
  readonly serviceLoader: ServiceLoader;
  /** Absent on a node without gateways. */
  readonly gateways?: GatewayHost | undefined;
}

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
