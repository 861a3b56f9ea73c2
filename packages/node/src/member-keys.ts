import { Barrier, type OnSealWritten } from '@transitd/barrier';
import type { MemberEvents, StateComparison } from '@transitd/cluster';
import type { Replica } from '@transitd/storage-fsm';
import type { EtcdEngine } from './etcd/etcd-engine.ts';
import type { MemberHost } from './member.ts';
import { MemberSeal } from './member-seal.ts';
import { ServiceLoader } from './service-loader.ts';
import { ServingRole } from './serving-role.ts';
import type { RaftEngine } from './storage/raft-engine.ts';

/** The barrier of a member and what depends on its keys. */
export interface MemberKeys {
  readonly barrier: Barrier;
  readonly services: ServiceLoader;
  readonly role: ServingRole;
  readonly seal: MemberSeal;
}

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

/**
 * Returns the barrier with its services, the role of this node and its seal.
 * @param comparison - of this node's records with the active node's
 * @param membership - whether this node was removed from its cluster
 */
export function keysOf(
  host: MemberHost,
  engine: RaftEngine | EtcdEngine,
  {
    barrier,
    events,
    comparison,
    membership,
  }: {
    readonly barrier: Barrier;
    readonly events: MemberEvents;
    readonly comparison: Pick<StateComparison, 'verdict'>;
    readonly membership: { readonly removed: boolean };
  },
): MemberKeys {
  const services = new ServiceLoader(host, events);
  const role = new ServingRole(engine, services, comparison);
  const seal = new MemberSeal(host, { barrier, services, membership, engine, events });
  return { barrier, services, role, seal };
}

/** In the log of the node that wrote the seal, whether a task of the active node or the unseal of the node led to it. */
const sealWritten: Readonly<Record<Parameters<OnSealWritten>[0], string>> = {
  rewrapped: 'wrapped the root key under the present seal key',
  migrated: 'migrated the seal',
};
