import type { ConfState, DriverStatus, LogIndex, NodeId, PeerStatus, Term } from '@transitd/raft-core';
import { majority } from '@transitd/raft-core';
import type { Member, Membership } from '../membership/membership.ts';
import type { AutopilotSettings } from './autopilot-settings.ts';

/** A member as the leader sees it. */
export interface ServerState {
  readonly member: Member;
  readonly part: 'leader' | 'voter' | 'non-voter';
  /** Heard of within an election timeout. */
  readonly alive: boolean;
  readonly healthy: boolean;
  /** Since its last sign of life; 0 for the leader itself. */
  readonly silentMs: number;
  readonly lastIndex: LogIndex;
  /** Of the entry there; 0 where the leader does not know it. */
  readonly lastTerm: Term;
}

export interface ClusterState {
  readonly healthy: boolean;
  /** How many of the healthy voters can fail before there is no majority. */
  readonly failureTolerance: number;
  readonly servers: readonly ServerState[];
}

export interface LeadersView {
  readonly status: Pick<DriverStatus, 'nodeId' | 'term' | 'lastIndex'>;
  /** First entry of this leader's term. */
  readonly termStartIndex: LogIndex;
  readonly conf: ConfState;
  readonly membership: Membership;
  readonly peers: readonly PeerStatus[];
}

/** What the leader makes of its members. A member that is sealed, or short of disk, could not lead: it is not healthy. */
export function clusterState(
  { status, termStartIndex, conf, membership, peers }: LeadersView,
  { lastContactThreshold, maxTrailingLogs }: Pick<AutopilotSettings, 'lastContactThreshold' | 'maxTrailingLogs'>,
): ClusterState {
  const { nodeId, term, lastIndex } = status;
  const servers = membership.members.map((member): ServerState => {
    if (member.id === nodeId)
      return { member, part: 'leader', alive: true, healthy: true, silentMs: 0, lastIndex, lastTerm: term };
    const peer = peers.find(({ id }) => id === member.id);
    const { active = false, fit = false, silentMs = 0, match = 0 } = peer ?? {};
    const isNear = silentMs <= 1000 * lastContactThreshold && lastIndex - match <= maxTrailingLogs;
    return {
      member,
      part: conf.voters.includes(member.id) ? 'voter' : 'non-voter',
      alive: active,
      healthy: peer !== undefined && isNear && fit,
      silentMs,
      lastIndex: match,
      lastTerm: match >= termStartIndex ? term : 0,
    };
  });
  const healthyVoters = servers.filter(({ part, healthy }) => healthy && part !== 'non-voter').length;
  return {
    healthy: servers.every(({ healthy }) => healthy),
    failureTolerance: Math.max(0, healthyVoters - majority(conf.voters.length)),
    servers,
  };
}

/** The member that is to be removed next because it has been dead for long; undefined while there is none, or it may not be. */
export function deadServer({ servers }: ClusterState, settings: AutopilotSettings): NodeId | undefined {
  const { cleanupDeadServers, deadServerLastContactThreshold, minQuorum } = settings;
  if (!cleanupDeadServers || minQuorum < 3) return undefined;
  const dead = servers.filter(
    ({ part, alive, silentMs }) => part !== 'leader' && !alive && silentMs > 1000 * deadServerLastContactThreshold,
  );
  const voters = servers.filter(({ part }) => part !== 'non-voter').length;
  return dead.find(({ part }) => part === 'non-voter' || voters > minQuorum)?.member.id;
}

/** Since when each member has been as healthy, or not, as it is: as far as this leader has seen it. */
export class Stability {
  readonly #seen = new Map<NodeId, { readonly healthy: boolean; readonly sinceUtcMs: number }>();

  /** Another term begins: what was seen in an earlier one says nothing about the time between. */
  clear(): void {
    this.#seen.clear();
  }

  observe({ servers }: ClusterState, utcMs: number): void {
    for (const id of this.#seen.keys()) if (!servers.some(({ member }) => member.id === id)) this.#seen.delete(id);
    for (const { member, healthy } of servers)
      if (this.#seen.get(member.id)?.healthy !== healthy) this.#seen.set(member.id, { healthy, sinceUtcMs: utcMs });
  }

  sinceUtcMs(id: NodeId): number | undefined {
    return this.#seen.get(id)?.sinceUtcMs;
  }
}
