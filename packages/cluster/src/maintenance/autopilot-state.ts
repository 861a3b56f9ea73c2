import type { ConfState, DriverStatus, LogIndex, NodeId, PeerStatus, Term } from '@transitd/raft-core';
import { majority } from '@transitd/raft-core';
import type { Member, Membership } from '../membership/membership.ts';
import type { AutopilotSettings } from './autopilot-settings.ts';

/** A member as the leader sees it. */
export interface ServerState {
  readonly member: Member;
  readonly role: 'leader' | 'voter' | 'non-voter';
  /** Whether the member was heard within an election timeout. */
  readonly alive: boolean;
  readonly healthy: boolean;
  /** Time since the member's last message; 0 for the leader itself. */
  readonly silentMs: number;
  readonly lastIndex: LogIndex;
  /** Term of the entry at `lastIndex`; 0 when the leader does not know it. */
  readonly lastTerm: Term;
}

export interface ClusterState {
  readonly healthy: boolean;
  /** How many healthy voters can fail before the majority is lost. */
  readonly failureTolerance: number;
  readonly servers: readonly ServerState[];
}

export interface LeaderView {
  readonly status: Pick<DriverStatus, 'nodeId' | 'term' | 'lastIndex'>;
  /** First entry of this leader's term. */
  readonly termStartIndex: LogIndex;
  readonly conf: ConfState;
  readonly membership: Membership;
  readonly peers: readonly PeerStatus[];
}

/** Returns the health of the members. A member that is sealed or short of disk could not lead, so it is not healthy. */
export function clusterState(
  { status, termStartIndex, conf, membership, peers }: LeaderView,
  { lastContactThreshold, maxTrailingLogs }: Pick<AutopilotSettings, 'lastContactThreshold' | 'maxTrailingLogs'>,
): ClusterState {
  const { nodeId, term, lastIndex } = status;
  const servers = membership.members.map((member): ServerState => {
    if (member.id === nodeId)
      return { member, role: 'leader', alive: true, healthy: true, silentMs: 0, lastIndex, lastTerm: term };
    const peer = peers.find(({ id }) => id === member.id);
    const { active = false, fit = false, silentMs = 0, match = 0 } = peer ?? {};
    const isNear = silentMs <= 1000 * lastContactThreshold && lastIndex - match <= maxTrailingLogs;
    return {
      member,
      role: conf.voters.includes(member.id) ? 'voter' : 'non-voter',
      alive: active,
      healthy: peer !== undefined && isNear && fit,
      silentMs,
      lastIndex: match,
      lastTerm: match >= termStartIndex ? term : 0,
    };
  });
  const healthyVoters = servers.filter(({ role, healthy }) => healthy && role !== 'non-voter').length;
  return {
    healthy: servers.every(({ healthy }) => healthy),
    failureTolerance: Math.max(0, healthyVoters - majority(conf.voters.length)),
    servers,
  };
}

/** Returns the next dead member to remove; undefined if no member is dead, or the settings do not allow a removal. */
export function deadServer({ servers }: ClusterState, settings: AutopilotSettings): NodeId | undefined {
  const { cleanupDeadServers, deadServerLastContactThreshold, minQuorum } = settings;
  if (!cleanupDeadServers || minQuorum < 3) return undefined;
  const dead = servers.filter(
    ({ role, alive, silentMs }) => role !== 'leader' && !alive && silentMs > 1000 * deadServerLastContactThreshold,
  );
  const voters = servers.filter(({ role }) => role !== 'non-voter').length;
  return dead.find(({ role }) => role === 'non-voter' || voters > minQuorum)?.member.id;
}

/** Tracks how long each member has been healthy or unhealthy, as observed by this leader. */
export class Stability {
  readonly #observed = new Map<NodeId, { readonly healthy: boolean; readonly sinceUtcMs: number }>();

  /** Forgets everything at the beginning of a term: this node observed nothing between its terms as leader. */
  clear(): void {
    this.#observed.clear();
  }

  observe({ servers }: ClusterState, utcMs: number): void {
    for (const id of this.#observed.keys()) if (!servers.some(({ member }) => member.id === id)) this.#observed.delete(id);
    for (const { member, healthy } of servers)
      if (this.#observed.get(member.id)?.healthy !== healthy) this.#observed.set(member.id, { healthy, sinceUtcMs: utcMs });
  }

  sinceUtcMs(id: NodeId): number | undefined {
    return this.#observed.get(id)?.sinceUtcMs;
  }
}
