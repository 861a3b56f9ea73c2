import type { Config } from '@transitd/configuration';
import { systemClock } from '@transitd/process';
import type { LogIndex } from '@transitd/raft-core';
import { fieldsIn, StoreError } from '@transitd/storage-fsm';
import { listPath } from './list-delivery.ts';
import type { DigestCheck } from './maintenance/digest-check.ts';
import { renewalHandler, renewPath } from './maintenance/renewal.ts';
import type { SigningAuthority } from './maintenance/signing-authority.ts';
import type { ConfigurationChanges } from './membership/configuration-changes.ts';
import type { MembershipListSync } from './membership/membership-list-sync.ts';
import { ListRefused, type SignedList } from './membership/signed-list.ts';
import { nodeCalls } from './node-calls.ts';
import type { NodeRole, ReportSource } from './ports/cluster-host.ts';
import type { Storage } from './ports/storage-port.ts';
import type { RaftConnections } from './raft-connections.ts';
import { type HeartbeatReply, heartbeatRequestSchema } from './standbys/heartbeat-wire.ts';
import { replicationModes } from './standbys/replication-modes.ts';
import { hexOf } from './standbys/state-comparison.ts';
import type { ClusterHandler } from './transport/cluster-call.ts';
import { type UnsealedProofs, unsealedHandler, unsealedPath } from './transport/unsealed-proof.ts';

export interface ClusterCallsOptions {
  readonly config: Pick<Config, 'cluster_heartbeat_interval'>;
  readonly role: Pick<NodeRole, 'isActive'>;
  readonly storage: Storage;
  readonly connections: RaftConnections;
  readonly lists: Pick<MembershipListSync, 'newest' | 'receive'>;
  readonly authority: SigningAuthority;
  readonly changes: Pick<ConfigurationChanges, 'make'>;
  readonly proofs: UnsealedProofs;
  readonly reports: ReportSource;
  /** Runs when another node reports that its state digest differs from this node's. */
  readonly digestCheck: Pick<DigestCheck, 'run'>;
}

export const authorityCall = '/cluster/authority';

const malformed = { status: 400, json: {} } as const;

/** Returns the handlers of calls on the cluster port, by method and path. */
export function clusterCalls({
  config,
  role,
  storage,
  connections,
  lists,
  authority,
  changes,
  proofs,
  reports,
  digestCheck,
}: ClusterCallsOptions): Readonly<Record<string, ClusterHandler>> {
  const { driver, machine, snapshots } = storage;
  const { cluster_heartbeat_interval: intervalMs } = config;
  const confirmsLeadership = (): Promise<boolean> =>
    storage.replica.fresh().then(
      () => role.isActive,
      () => false,
    );
  /** Undefined if this node was removed. */
  const committed = () => (connections.removed ? undefined : connections.membershipList.committed);
  const newerList = (than: LogIndex): { readonly list?: SignedList } => {
    const { newest } = lists;
    return newest !== undefined && newest.index > than ? { list: newest.signed } : {};
  };
  return {
    /** A node that forwards requests calls this on each new connection. */
    [`POST ${unsealedPath}`]: unsealedHandler(proofs),
    /**
     * Status 200 requires a leader lease or a quorum that has just confirmed leadership, because a deposed leader must not keep a standby
     * serving. The quorum matters after a failed leadership transfer: the leader has no lease for the rest of its term then. A node that is
     * not active answers with the members, since the caller may not know the leader. Status 409 refuses a caller with another interval:
     * that caller would serve old state for longer than this node waits.
     */
    'POST /cluster/echo': async ({ from, certificate, body }) => {
      const read = heartbeatRequestSchema.safeParse(fieldsIn(body));
      if (!read.success) return malformed;
      const heartbeat = read.data;
      if (!role.isActive || !(storage.holdsLease() || (await confirmsLeadership())))
        return { status: 503, json: { active: false, committed: committed(), ...newerList(heartbeat.listIndex) } };
      if (heartbeat.differs) void digestCheck.run();
      if (heartbeat.intervalMs !== intervalMs) return { status: 409, json: { intervalMs } };
      connections.peers.standbys.heartbeatReceived(from, { ...heartbeat, certificate });
      const { appliedIndex, digest } = machine.applied;
      const answer: HeartbeatReply = {
        state: { index: appliedIndex, digest: hexOf(digest) },
        commitIndex: driver.status().commitIndex,
        utcMs: Date.now(),
        replication: replicationModes(machine.replication),
        ...newerList(heartbeat.listIndex),
      };
      return { status: 200, json: answer };
    },

    ...nodeCalls(storage.replica, reports),

    [`POST ${renewPath}`]: renewalHandler({ role, authority, changes, clock: systemClock }),

    /** Sent by a node that this node does not admit, perhaps because this node was away while the members were replaced. */
    [`POST ${listPath}`]: async ({ from, certificate, body }) => {
      // A node that hears a leader learns of its members from that one.
      if (driver.status().leader !== 0) return { status: 409, json: {} };
      try {
        const verdict = await lists.receive(fieldsIn(body), { id: from, certificate });
        return { status: verdict === 'take' || verdict === 'known' ? 200 : 403, json: { verdict } };
      } catch (error) {
        if (error instanceof ListRefused) return malformed;
        throw error;
      }
    },

    /** Sent by the node that ran a restore under another root key: only that node still has the authority's key. */
    [`POST ${authorityCall}`]: async ({ body }) => {
      const { key, certificate } = fieldsIn(body);
      if (typeof key !== 'string' || typeof certificate !== 'string') return malformed;
      if (!role.isActive) throw new StoreError('not_leader', 'this node is not the active one');
      await authority.keep({ key, certificate });
      return { status: 200, json: {} };
    },

    'GET /cluster/snapshot': async ({ from, query }) => {
      const index = Number(query.get('index') ?? Number.NaN);
      return Number.isSafeInteger(index) && index >= 0 ? { stream: snapshots.stream(from, index) } : malformed;
    },
  };
}
