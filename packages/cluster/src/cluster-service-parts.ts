// The parts that the cluster services share, and how each service is made of them.
import { randomBytes } from 'node:crypto';
import type { LogIndex, NodeId } from '@transitd/raft-core';
import type { ClusterPort } from './cluster-port.ts';
import { admit } from './join/admission.ts';
import { JoinDesk } from './join/join-desk.ts';
import { AuthorityRotation } from './maintenance/authority-rotation.ts';
import { Autopilot } from './maintenance/autopilot.ts';
import { FasterLeaderTransfer } from './maintenance/faster-leader-transfer.ts';
import { FeatureLevelControl } from './maintenance/feature-level-control.ts';
import { authorityOf } from './maintenance/member-entries.ts';
import { MemberOperations } from './maintenance/member-operations.ts';
import { raftLevels } from './maintenance/raft-levels.ts';
import { Renewal } from './maintenance/renewal.ts';
import type { ConfigurationChanges } from './membership/configuration-changes.ts';
import type { MembershipList } from './membership/membership-list.ts';
import { MembershipListSync } from './membership/membership-list-sync.ts';
import type { ClusterHost, LocalNode } from './ports/cluster-host.ts';
import type { Heartbeats } from './standbys/heartbeats.ts';
import { reachedState } from './standbys/reached-state.ts';
import type { Standbys } from './standbys/standbys.ts';
import type { ClusterClient } from './transport/cluster-client.ts';
import { Forwarder, type ForwarderOptions } from './transport/forwarder.ts';

export interface ClusterServicesParts {
  readonly host: ClusterHost;
  readonly local: LocalNode;
  readonly membershipList: MembershipList;
  readonly heartbeats: Heartbeats;
  readonly standbys: Standbys;
  readonly client: ClusterClient;
  readonly port: ClusterPort;
  readonly pause: (ms: number) => Promise<void>;
  readonly isRemoved: () => boolean;
  /** This node was removed. @param confIndex - index of the configuration in force that this node knows */
  readonly onRemoved: (confIndex: LogIndex) => void;
  /** The members known to this node may have changed. */
  readonly onMembers: () => void;
  /** Members that this node has no Raft connection to. */
  readonly unconnected: () => readonly NodeId[];
}

export const newFasterLeaderTransfer = ({ host, local, membershipList, standbys }: ClusterServicesParts): FasterLeaderTransfer =>
  new FasterLeaderTransfer({
    driver: local.storage.driver,
    membershipList,
    standbys,
    log: host.log,
    heartbeatIntervalMs: host.config.cluster_heartbeat_interval,
  });

export const newMemberOperations = (parts: ClusterServicesParts, changes: ConfigurationChanges): MemberOperations =>
  new MemberOperations({
    driver: parts.local.storage.driver,
    changes,
    standbys: parts.standbys,
    unconnected: parts.unconnected,
    onIsolated: (voters) =>
      parts.host.log.warn(
        { voters },
        'a voter that cannot be reached may know only nodes that have left: when it returns, it needs the signed membership list to rejoin. Remove it if it does not return',
      ),
  });

export const newAutopilot = ({ host, local, membershipList }: ClusterServicesParts, operator: MemberOperations): Autopilot =>
  new Autopilot({ storage: local.storage, membershipList, store: local.barrier.store, operator, log: host.log });

export const newAuthorityRotation = (
  { host, local, standbys }: ClusterServicesParts,
  changes: ConfigurationChanges,
): AuthorityRotation =>
  new AuthorityRotation({
    driver: local.storage.driver,
    changes,
    store: local.barrier.store,
    clusterId: local.clusterId,
    isHeard: (id) => standbys.report(id) !== undefined,
    log: host.log,
  });

export const newFeatureLevelControl = (
  { host, local, standbys }: ClusterServicesParts,
  changes: ConfigurationChanges,
): FeatureLevelControl =>
  new FeatureLevelControl({
    levels: raftLevels({ storage: local.storage, changes, announced: (id) => standbys.report(id)?.levels }),
    self: host.config.node_id,
    raiseAfterMs: host.config.feature_level_raise_after,
    nowMs: () => performance.now(),
    log: host.log,
  });

export const newListSync = ({ host, local, membershipList, onMembers }: ClusterServicesParts): MembershipListSync =>
  new MembershipListSync({
    directory: host.directory,
    clusterId: local.clusterId,
    membershipList,
    log: host.log,
    onMembers,
    onConflict: () => host.observer.membershipConflict(),
  });

/** @param leader - returns the leader that this node follows */
export const newRenewal = ({ client, membershipList, port }: ClusterServicesParts, leader: () => NodeId | undefined): Renewal =>
  new Renewal({
    client,
    identity: () => membershipList.identity,
    authorities: () => membershipList.authorities,
    authority: () => membershipList.committedAuthority,
    leader,
    setIdentity: (identity) => port.useIdentity(identity),
    now: Date.now,
  });

/** @param updateOwnEntry - adds this node to the committed membership */
export function newJoinDesk(
  { host, local, membershipList }: ClusterServicesParts,
  changes: ConfigurationChanges,
  updateOwnEntry: () => Promise<void>,
): JoinDesk {
  const { storage, barrier, nodeId, clusterId } = local;
  const current = () => membershipList.committedAuthority;
  return new JoinDesk({
    wrap: (exchanged) => barrier.wrapForJoin(exchanged),
    cluster: async () => ({
      id: clusterId,
      authority: (await authorityOf(barrier.store, clusterId, current())).certificate,
    }),
    admit: async (joiner) => {
      await updateOwnEntry(); // the joiner admits only the members named at its join: this node must be one of them
      return admit(
        {
          store: barrier.store,
          changes,
          clusterId,
          current: current(),
          self: nodeId,
          selfName: host.config.node_id,
          peers: () => storage.driver.peers(),
          level: () => storage.machine.featureLevel,
        },
        joiner,
      );
    },
    nowMs: () => performance.now(),
    randomBytes,
  });
}

/** @param leader - returns the leader that this node follows */
export const newForwarder = ({ client, host, local }: ClusterServicesParts, leader: ForwarderOptions['leader']): Forwarder =>
  new Forwarder({
    client,
    leader,
    reached: async (index, withinMs) => (await reachedState(index, withinMs, local.storage)) === 'reached',
    self: host.config.node_id,
  });
