import { Barrier, type OnSealWritten } from '@transitd/barrier';
import type { Replica } from '@transitd/storage-fsm';
import type { MemberHost } from './member.ts';

/**
 * Opens the barrier over the records of an engine, sealed.
 * @param witnessPath - see `BarrierOptions`; on Raft only
 */
export function openBarrier(
  { config, opened, log, clock }: Pick<MemberHost, 'config' | 'opened' | 'log' | 'clock'>,
  replica: Replica,
  witnessPath?: string,
): Promise<Barrier> {
  const { max_operations: maxOperations, interval: intervalMs } = config.barrier_rotation;
  const { seal } = opened;
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
