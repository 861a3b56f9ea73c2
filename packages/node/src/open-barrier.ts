import { Barrier, type OnSealWritten, type SealConfig } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import type { Logger } from '@transitd/process';
import type { Replica } from '@transitd/storage-fsm';
import type { NodeClock } from './clock/node-clock.ts';

/**
 * Opens the barrier over the records of a replica, sealed.
 * @param witnessPath - see `BarrierOptions`; on Raft only
 */
export function openBarrier(
  {
    config,
    seal,
    log,
    clock,
  }: {
    readonly config: Pick<Config, 'barrier_rotation'>;
    readonly seal: SealConfig;
    readonly log: Logger;
    readonly clock: NodeClock;
  },
  replica: Replica,
  witnessPath?: string,
): Promise<Barrier> {
  const { max_operations: maxOperations, interval: intervalMs } = config.barrier_rotation;
  return Barrier.open({
    store: replica,
    seal,
    valuesWritten: () => replica.status().valuesWritten,
    clock,
    rotation: { enabled: true, maxOperations, intervalMs },
    onSealWritten: (change) => log.info({ seal: seal.type }, sealWritten[change]),
    ...(witnessPath !== undefined && { witnessPath }),
  });
}

/** In the log of the node that wrote the seal, whether a task of the active node or the unseal of the node led to it. */
const sealWritten: Readonly<Record<Parameters<OnSealWritten>[0], string>> = {
  rewrapped: 'wrapped the root key under the present seal key',
  migrated: 'migrated the seal',
};
