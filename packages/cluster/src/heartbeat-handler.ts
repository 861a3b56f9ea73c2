import type { Config } from '@transitd/configuration';
import { fieldsIn } from '@transitd/storage-fsm';
import type { DigestCheck } from './maintenance/digest-check.ts';
import type { MembershipListSync } from './membership/membership-list-sync.ts';
import type { NodeRole } from './ports/cluster-host.ts';
import type { Storage } from './ports/storage-port.ts';
import type { RaftConnections } from './raft-connections.ts';
import { type HeartbeatReply, heartbeatRequestSchema } from './standbys/heartbeat-wire.ts';
import { replicationModes } from './standbys/replication-modes.ts';
import { hexOf } from './standbys/state-comparison.ts';
import type { ClusterHandler } from './transport/cluster-call.ts';

export interface HeartbeatHandlerOptions {
  readonly config: Pick<Config, 'cluster_heartbeat_interval'>;
  readonly role: Pick<NodeRole, 'isActive'>;
  readonly storage: Storage;
  readonly connections: RaftConnections;
  readonly lists: Pick<MembershipListSync, 'newest'>;
  /** Runs when another node reports that its state digest differs from this node's. */
  readonly digestCheck: Pick<DigestCheck, 'run'>;
}

/**
 * Returns the handler of heartbeats. Status 200 requires a leader lease or a quorum that has just confirmed leadership, because a deposed
 * leader must not keep a standby serving. The quorum matters after a failed leadership transfer: the leader has no lease for the rest of
 * its term then. A node that is not active answers with the members, since the caller may not know the leader. Status 409 refuses a caller
 * with another interval: that caller would serve old state for longer than this node waits.
 */
export function heartbeatHandler({
  config,
  role,
  storage,
  connections,
  lists,
  digestCheck,
}: HeartbeatHandlerOptions): ClusterHandler {
  const { cluster_heartbeat_interval: intervalMs } = config;
  const confirmsLeadership = (): Promise<boolean> =>
    storage.replica.fresh().then(
      () => role.isActive,
      () => false,
    );
  return async ({ from, certificate, body }) => {
    const read = heartbeatRequestSchema.safeParse(fieldsIn(body));
    if (!read.success) return { status: 400, json: {} };
    const heartbeat = read.data;
    const newerList = (): Pick<HeartbeatReply, 'list'> => {
      const { newest } = lists;
      return newest !== undefined && newest.index > heartbeat.listIndex ? { list: newest.signed } : {};
    };
    const leads = role.isActive && (storage.holdsLease() || (await confirmsLeadership()));
    // A caller that was removed meanwhile would be permitted to serve for longer than its removal waits.
    if (!leads || connections.membershipList.removedAt(from) !== undefined) {
      const committed = connections.removed ? undefined : connections.membershipList.committed;
      return { status: 503, json: { active: false, committed, ...newerList() } };
    }
    if (heartbeat.differs) void digestCheck.run();
    if (heartbeat.intervalMs !== intervalMs) return { status: 409, json: { intervalMs } };
    connections.peers.standbys.heartbeatReceived(from, { ...heartbeat, certificate });
    const { appliedIndex, digest } = storage.machine.applied;
    const answer: HeartbeatReply = {
      state: { index: appliedIndex, digest: hexOf(digest) },
      commitIndex: storage.driver.status().commitIndex,
      utcMs: Date.now(),
      replication: replicationModes(storage.machine.replication),
      ...newerList(),
    };
    return { status: 200, json: answer };
  };
}
