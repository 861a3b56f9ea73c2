import { hostname } from 'node:os';
import { RepeatingTask } from '@transitd/event-loop';
import { reasonOf, version } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { supportedLevels } from '@transitd/storage-fsm';
import type { CommittedMembers } from './membership/membership.ts';
import type { MembershipListSync } from './membership/membership-list-sync.ts';
import type { SignedList } from './membership/signed-list.ts';
import type { ClusterHost, NodeRole } from './ports/cluster-host.ts';
import type { Storage } from './ports/storage-port.ts';
import type { RaftConnections } from './raft-connections.ts';
import {
  committedMembersIn,
  type HeartbeatRequest,
  heartbeatPath,
  heartbeatReplySchema,
  intervalIn,
  signedListIn,
} from './standbys/heartbeat-wire.ts';
import type { Heartbeats } from './standbys/heartbeats.ts';
import type { StateComparison } from './standbys/state-comparison.ts';

export interface HeartbeatExchangeOptions {
  readonly host: Pick<ClusterHost, 'api' | 'config' | 'events' | 'log' | 'observer'>;
  readonly role: Pick<NodeRole, 'isUnsealed'>;
  readonly storage: Pick<Storage, 'driver' | 'diskLow' | 'replica'>;
  readonly connections: RaftConnections;
  readonly heartbeats: Heartbeats;
  readonly lists: Pick<MembershipListSync, 'newest' | 'receive'>;
  readonly comparison: Pick<StateComparison, 'compareWith' | 'verdict'>;
}

/**
 * Sends the heartbeats of a node that does not lead, and applies the answers: one in each interval, and one at once after a change. Never
 * sends two at a time.
 */
export class HeartbeatExchange {
  readonly #options: HeartbeatExchangeOptions;
  readonly #interval: RepeatingTask;
  #inFlight = false;
  #sendAgain = false;
  #intervalMismatchLogged = false;

  constructor(options: HeartbeatExchangeOptions) {
    this.#options = options;
    this.#interval = new RepeatingTask(options.host.config.cluster_heartbeat_interval, () => void this.#send());
  }

  start(): void {
    this.#interval.start();
    void this.#send();
  }

  stop(): void {
    this.#interval.stop();
  }

  /**
   * If a leader is known, sends a heartbeat at once: the leader or the seal has changed, so earlier answers are out of date. Without one,
   * the next interval is soon enough: the nodes that elect a leader should not make connections to each other meanwhile.
   */
  sendNow(): void {
    if (!this.#interval.isStarted || this.#options.storage.driver.status().leader === 0) return;
    this.#sendAgain = this.#inFlight;
    void this.#send();
  }

  async #send(): Promise<void> {
    const to = this.#target;
    if (this.#inFlight || to === undefined) return;
    this.#inFlight = true;
    const { connections, heartbeats, host } = this.#options;
    const { membershipList, peers } = connections;
    const name = (): string => membershipList.member(to)?.name ?? '';
    const sentMs = performance.now();
    try {
      const timeoutMs = host.config.cluster_heartbeat_interval;
      const answer = await peers.client.post(to, heartbeatPath, { json: this.#request, timeoutMs }).catch((error: unknown) => {
        host.observer.heartbeatFailed(name());
        throw error;
      });
      const received = { sentMs, receivedMs: performance.now(), receivedUtcMs: Date.now() };
      if (answer.status === 200) host.observer.heartbeatAnswered(name(), received.receivedMs - sentMs);
      else host.observer.heartbeatFailed(name());
      if (answer.status === 410) host.events.emit('removalNotice');
      if (answer.status === 200) {
        const reply = heartbeatReplySchema.parse(answer.json);
        heartbeats.answered(reply, received);
        if (reply.state !== undefined) this.#options.comparison.compareWith(reply.state);
      } else heartbeats.failed({ sentMs, nowMs: received.receivedMs });
      const list = signedListIn(answer.json);
      if (list !== undefined) void this.#onList(to, list);
      if (answer.status === 409) this.#onIntervalMismatch(intervalIn(answer.json));
      const members = answer.status === 503 ? committedMembersIn(answer.json) : undefined;
      if (members !== undefined) this.#onMembers(to, members);
    } catch {
      heartbeats.failed({ sentMs, nowMs: performance.now() });
    } finally {
      this.#inFlight = false;
      if (this.#sendAgain) {
        this.#sendAgain = false;
        void this.#send();
      }
    }
  }

  /** The leader. While no leader is known, the members in turn: one of them may know that this node was removed. */
  get #target(): NodeId | undefined {
    const { host, storage, connections } = this.#options;
    const { membershipList, removed } = connections;
    if (removed || membershipList.identity === undefined) return undefined;
    const { leader, nodeId } = storage.driver.status();
    if (leader !== 0) return leader === nodeId ? undefined : leader;
    const others = membershipList.knownMembers.filter(({ id }) => id !== nodeId);
    return others[Math.floor(performance.now() / host.config.cluster_heartbeat_interval) % Math.max(1, others.length)]?.id;
  }

  get #request(): HeartbeatRequest {
    const { host, role, storage, lists, comparison } = this.#options;
    const { config, api } = host;
    const sealed = !role.isUnsealed;
    return {
      name: config.node_id,
      apiAddress: api.url,
      clusterAddress: config.cluster_addr ?? '',
      appliedIndex: storage.replica.status().appliedIndex,
      intervalMs: config.cluster_heartbeat_interval,
      writeMs: storage.driver.writeMs,
      diskLow: storage.diskLow(),
      serves: !sealed && config.performance_standby,
      sealed,
      differs: comparison.verdict === 'different',
      levels: supportedLevels,
      version,
      hostname: hostname().slice(0, 255),
      listIndex: lists.newest?.index ?? 0,
    };
  }

  /** Uses the members that a node reports that is not active, while this node hears no leader. */
  #onMembers(from: NodeId, members: CommittedMembers): void {
    const { host, storage, connections } = this.#options;
    const isLeaderless = storage.driver.status().leader === 0;
    if (isLeaderless && connections.membershipList.useReport(from, members)) host.events.emit('members');
  }

  async #onList(from: NodeId, list: SignedList): Promise<void> {
    const { host, lists, connections } = this.#options;
    try {
      await lists.receive(list, { id: from });
    } catch (error) {
      const name = connections.membershipList.member(from)?.name;
      host.log.warn({ from, name, reason: reasonOf(error) }, 'refused the membership list of another node');
    }
  }

  /** Forgets earlier answers: they would let this node serve for longer than the present active node waits. */
  #onIntervalMismatch(theirsMs: number | undefined): void {
    const { heartbeats, host } = this.#options;
    if (heartbeats.times.answeredSentMs !== undefined) heartbeats.restart(performance.now());
    if (this.#intervalMismatchLogged) return;
    this.#intervalMismatchLogged = true;
    host.log.error(
      { ownMs: host.config.cluster_heartbeat_interval, theirsMs },
      "cluster_heartbeat_interval differs from the active node's, so this node serves nothing: set the same value on all nodes and restart",
    );
  }
}
