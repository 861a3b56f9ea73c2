import { hostname } from 'node:os';
import { reasonOf, version } from '@transitd/process';
import type { LogIndex, NodeId } from '@transitd/raft-core';
import { supportedLevels } from '@transitd/storage-fsm';
import type { CommittedMembers, MembershipList } from './membership/membership-list.ts';
import type { MembershipListSync } from './membership/membership-list-sync.ts';
import type { SignedList } from './membership/signed-list.ts';
import type { ClusterHost, LocalNode } from './ports/cluster-host.ts';
import { HeartbeatSender } from './standbys/heartbeat-sender.ts';
import type { HeartbeatRequest } from './standbys/heartbeat-wire.ts';
import type { Heartbeats } from './standbys/heartbeats.ts';
import type { StateComparison } from './standbys/state-comparison.ts';
import type { ClusterClient } from './transport/cluster-client.ts';

export interface HeartbeatExchangeParts {
  readonly host: ClusterHost;
  readonly local: LocalNode;
  readonly membershipList: MembershipList;
  readonly lists: MembershipListSync;
  readonly heartbeats: Heartbeats;
  readonly stateComparison: StateComparison;
  readonly client: ClusterClient;
  readonly appliedIndex: () => LogIndex;
  readonly isRemoved: () => boolean;
  /** A member reported that this node was removed. */
  readonly onRemoved: () => void;
  /** A member reported members that this node did not know. */
  readonly onMembers: () => void;
}

/** Sends the heartbeats of this node to the active node: chooses the receiver, builds the request and applies the answer. */
export class HeartbeatExchange {
  readonly #parts: HeartbeatExchangeParts;
  readonly #sender: HeartbeatSender;
  #intervalMismatchLogged = false;

  constructor(parts: HeartbeatExchangeParts) {
    const { host, membershipList, heartbeats, stateComparison, client, onRemoved } = parts;
    this.#parts = parts;
    this.#sender = new HeartbeatSender({
      client,
      onHeartbeat: (to, ms) => {
        const peer = membershipList.member(to)?.name ?? '';
        if (ms === undefined) host.observer.heartbeatFailed(peer);
        else host.observer.heartbeatAnswered(peer, ms);
      },
      heartbeats,
      intervalMs: host.config.cluster_heartbeat_interval,
      target: () => this.#target(),
      request: () => this.#request(),
      onRemoved,
      onInterval: (theirsMs) => this.#onIntervalMismatch(theirsMs),
      onMembers: (from, members) => this.#onMembers(from, members),
      onList: (from, list) => void this.#onList(from, list),
      onState: (state) => stateComparison.compareWith(state),
    });
  }

  start(): void {
    this.#sender.start();
  }

  stop(): void {
    this.#sender.stop();
  }

  /** Sends a heartbeat at once: the leader or the seal has changed. */
  sendNow(): void {
    this.#sender.sendNow();
  }

  /** Returns the leader. While no leader is known, returns the members in turn: one of them may know that this node was removed. */
  #target(): NodeId | undefined {
    const { host, local, membershipList, isRemoved } = this.#parts;
    if (isRemoved() || membershipList.identity === undefined) return undefined;
    const { leader } = local.storage.driver.status();
    if (leader !== 0) return leader === local.nodeId ? undefined : leader;
    const others = membershipList.knownMembers.filter(({ id }) => id !== local.nodeId);
    return others[Math.floor(performance.now() / host.config.cluster_heartbeat_interval) % Math.max(1, others.length)]?.id;
  }

  #request(): HeartbeatRequest {
    const { host, local, lists, stateComparison, appliedIndex } = this.#parts;
    const { config, apiAddress, isUnsealed } = host;
    const sealed = !isUnsealed();
    return {
      name: config.node_id,
      apiAddress: apiAddress(),
      clusterAddress: config.cluster_addr ?? '',
      appliedIndex: appliedIndex(),
      intervalMs: config.cluster_heartbeat_interval,
      writeMs: local.storage.driver.writeMs,
      diskLow: local.storage.diskLow(),
      serves: !sealed && config.performance_standby,
      sealed,
      differs: stateComparison.verdict === 'different',
      levels: supportedLevels,
      version,
      hostname: hostname().slice(0, 255),
      listIndex: lists.newest?.index ?? 0,
    };
  }

  #onMembers(from: NodeId, members: CommittedMembers): void {
    const { local, membershipList, onMembers } = this.#parts;
    const isLeaderless = local.storage.driver.status().leader === 0;
    if (isLeaderless && membershipList.useReport(from, members)) onMembers();
  }

  async #onList(from: NodeId, list: SignedList): Promise<void> {
    const { host, lists, membershipList } = this.#parts;
    try {
      await lists.receive(list, { id: from });
    } catch (error) {
      const name = membershipList.member(from)?.name;
      host.log.warn({ from, name, reason: reasonOf(error) }, 'refused the membership list of another node');
    }
  }

  /** Forgets earlier answers: they would let this node serve for longer than the present active node waits. */
  #onIntervalMismatch(theirsMs: number | undefined): void {
    const { heartbeats, host } = this.#parts;
    if (heartbeats.times.answeredSentMs !== undefined) heartbeats.restart(performance.now());
    if (this.#intervalMismatchLogged) return;
    this.#intervalMismatchLogged = true;
    host.log.error(
      { ownMs: host.config.cluster_heartbeat_interval, theirsMs },
      "cluster_heartbeat_interval differs from the active node's, so this node serves nothing: set the same value on all nodes and restart",
    );
  }
}
