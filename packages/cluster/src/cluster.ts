import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Barrier } from '@transitd/barrier';
import { freshForIntervals } from '@transitd/health';
import { reasonOf, StartError } from '@transitd/process';
import { type DriverStatus, LogDamage, type LogIndex, type NodeId } from '@transitd/raft-core';
import { addressesMax, authoritiesMax, type PrimaryNodes } from '@transitd/replication';
import { StorageDamaged, StoreError } from '@transitd/storage-fsm';
import { ClusterPort } from './cluster-port.ts';
import { ClusterServices } from './cluster-services.ts';
import type { JoinDesk } from './join/join-desk.ts';
import type { AuthorityRotation } from './maintenance/authority-rotation.ts';
import type { Autopilot } from './maintenance/autopilot.ts';
import type { FeatureLevelControl } from './maintenance/feature-level-control.ts';
import type { MemberOperations } from './maintenance/member-operations.ts';
import type { ClusterAuthority } from './membership/authority.ts';
import { overtakenFile, recordExclusion, removalFile } from './membership/exclusion.ts';
import { type NodeIdentity, readIdentity } from './membership/identity.ts';
import { loadX509 } from './membership/load-x509.ts';
import type { Member } from './membership/membership.ts';
import { MembershipList } from './membership/membership-list.ts';
import { askForReport, askToConfirm, confirmWithinMs } from './node-calls.ts';
import type { Peers } from './peers.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import type { MembershipPorts, Storage } from './ports/storage-port.ts';
import { RaftPeers, staleDataDirectory } from './raft-peers.ts';
import type { ReplicationPort } from './replication/replication-port.ts';
import { Heartbeats } from './standbys/heartbeats.ts';
import { Standbys } from './standbys/standbys.ts';
import { ClusterClient } from './transport/cluster-client.ts';
import type { ClusterListenerOptions } from './transport/cluster-listener.ts';
import type { Forwarder } from './transport/forwarder.ts';
import type { UnsealedProofs } from './transport/unsealed-proof.ts';

/** Deadline for the head of the response with a snapshot. The leader opens its state before it sends the head. */
const snapshotHeadMs = 10_000;
/** How long recording an exclusion may take. After that the process ends without the record. */
const exclusionMsMax = 2_000;

/**
 * Everything that connects this node to the other members: cluster port, client, Raft connections, membership list and, once its log is
 * open, the services.
 */
export class Cluster implements Peers {
  readonly membershipList: MembershipList;
  readonly heartbeats: Heartbeats;
  readonly standbys: Standbys;
  readonly awaitedUntilMs = Number.POSITIVE_INFINITY; // the configuration in the log names the nodes
  readonly #host: ClusterHost;
  readonly #client: ClusterClient;
  readonly #port: ClusterPort;
  readonly #raftPeers: RaftPeers;
  #removed: boolean;
  #isStopping = false;
  /** Undefined until this node's log is open. */
  #services: ClusterServices | undefined;
  /** Aborted when this object closes; ends all pauses. */
  readonly #closing = new AbortController();

  private constructor(host: ClusterHost, identity: NodeIdentity | undefined, removed: boolean) {
    const { cluster_heartbeat_interval: intervalMs } = host.config;
    this.#host = host;
    this.membershipList = new MembershipList(host.directory, identity);
    this.#removed = removed;
    this.heartbeats = new Heartbeats(intervalMs, performance.now(), host.onHeartbeatsForgotten);
    this.#port = new ClusterPort({
      config: host.config,
      log: host.log,
      membershipList: this.membershipList,
      raft: (...connection) => this.#raftPeers.accept(...connection),
      judge: (from, incarnation) => this.#raftPeers.judge(from, incarnation),
      isLeaderless: () => this.#services?.isLeaderless ?? false,
    });
    this.#raftPeers = new RaftPeers({
      config: host.config,
      log: host.log,
      membershipList: this.membershipList,
      localAddress: this.#port.localAddress,
      onRemoved: () => this.#services?.removedByNotice(),
      onOvertaken: (error) => void this.#stopExcluded(error),
    });
    this.#client = new ClusterClient({
      identity: () => this.membershipList.requireIdentity(),
      incarnation: () => this.#raftPeers.incarnation,
      member: (id) => this.membershipList.member(id),
      localAddress: this.#port.localAddress,
      proofs: {
        prove: (...about) => this.#proofs.prove(...about),
        isProof: (...about) => this.#proofs.isProof(...about),
      },
    });
    this.standbys = new Standbys({
      servesForMs: freshForIntervals * intervalMs,
      nowMs: () => performance.now(),
      pause: this.#pause,
      confirm: (id, index) => askToConfirm(this.#client, id, { index, timeoutMs: confirmWithinMs + intervalMs }),
    });
  }

  /**
   * Reads this node's identity.
   * @throws StartError; StorageDamaged when an earlier start recorded that this disk was copied or rolled back
   */
  static async open(host: ClusterHost): Promise<Cluster> {
    if (existsSync(join(host.directory, overtakenFile))) throw new StorageDamaged(`data_dir is ${staleDataDirectory}`);
    await loadX509(); // later, a leader would miss heartbeats
    const identity = await readIdentity(host.directory);
    return new Cluster(host, identity, existsSync(join(host.directory, removalFile)));
  }

  /** Whether this node was removed from the cluster. */
  get removed(): boolean {
    return this.#removed;
  }

  /** Returns the other node that this node believes to be active; undefined if none is known or this node itself is active. */
  get identity(): NodeIdentity | undefined {
    return this.membershipList.identity;
  }

  get activeMember(): Member | undefined {
    return this.#services?.activeMember;
  }

  get forwarder(): Forwarder | undefined {
    return this.#services?.forwarder;
  }

  /** Membership changes by an operator; they succeed only on the leader. */
  get operator(): MemberOperations | undefined {
    return this.#services?.operator;
  }

  get autopilot(): Autopilot | undefined {
    return this.#services?.autopilot;
  }

  get rotation(): AuthorityRotation | undefined {
    return this.#services?.rotation;
  }

  get featureLevel(): FeatureLevelControl | undefined {
    return this.#services?.featureLevel;
  }

  get joinDesk(): JoinDesk | undefined {
    return this.#services?.joinDesk;
  }

  get #proofs(): UnsealedProofs {
    if (this.#services === undefined) throw new StoreError('sealed', 'the log of this node is not open');
    return this.#services.proofs;
  }

  /** Whether the state digest of this node was found equal to the active node's. */
  get stateDigestMatches(): boolean {
    return this.#services?.stateComparison.verdict === 'same';
  }

  /**
   * Whether a state digest mismatch was found. If so, this node serves nothing from its records until its next start, even if it becomes
   * the active node.
   */
  get stateDigestDiffers(): boolean {
    return this.#services?.stateComparison.verdict === 'different';
  }

  get canaryUtcMs(): number | undefined {
    return this.#services?.canary.utcMs;
  }

  /** Sets the handler of requests that other members forward. */
  serveForwarded(forwarded: ClusterListenerOptions['forwarded']): void {
    this.#port.serveForwarded(forwarded);
  }

  /** Sets the part of the cluster port that secondaries use; undefined if this node no longer admits any. */
  serveSecondaries(port: ReplicationPort | undefined): void {
    this.#port.serveGuests(port);
  }

  /** Where the members of this cluster are, and the authorities of their certificates: for secondaries. */
  get primaryNodes(): PrimaryNodes {
    return {
      addresses: this.membershipList.members.map(({ clusterAddress }) => clusterAddress).slice(0, addressesMax),
      authorities: this.membershipList.authorities.map((authority) => authority.toString()).slice(0, authoritiesMax),
    };
  }

  /** The ports for this node's Raft driver. */
  get ports(): MembershipPorts {
    return {
      removed: this.#removed,
      link: {
        open: async (from, index, signal) => {
          const answer = await this.#client.request(from, {
            method: 'GET',
            path: `/cluster/snapshot?index=${index}`,
            signal,
            timeoutMs: snapshotHeadMs,
          });
          if (answer.status === 200) return answer.body;
          answer.body.destroy();
          throw new Error(`node ${from} answered the request for a snapshot with status ${answer.status}`);
        },
      },
      onFetchFailed: (error) =>
        this.#host.log.warn({ reason: error.message }, 'could not fetch a snapshot from the leader; retrying'),
      peers: ({ nodeId, incarnation, snapshots, random }) => ({
        transport: this.#raftPeers.open(nodeId, incarnation),
        snapshots,
        random,
      }),
      onRemoved: (atIndex) => void this.#endMembership(atIndex),
      removedAt: (id) => this.membershipList.removedAt(id),
      promotes: (id) => this.membershipList.member(id)?.nonVoter === false,
      lowDisks: () => this.#services?.lowDisks ?? [],
    };
  }

  /** The configuration in force, or the newest committed one, has changed. */
  configurationChanged(): void {
    this.membershipList.configurationChanged();
    this.#followMembers();
    this.#services?.configurationChanged();
  }

  /** The role, term, leader or readiness of this node has changed. */
  statusChanged(status: DriverStatus): void {
    this.#services?.statusChanged(status);
  }

  /** This node was sealed or unsealed: earlier heartbeats no longer let it serve. */
  sealChanged(): void {
    this.heartbeats.restart(performance.now());
    this.#services?.sealChanged();
  }

  /**
   * Handles a storage failure. Damage of the log is recorded, because a later start may not notice that acknowledged entries are missing.
   */
  storageFailed(error: Error): void {
    if (error instanceof LogDamage) void this.#stopExcluded(error);
    else if (!this.#isStopping) this.#host.onFatal(error); // otherwise the process ends once the exclusion is recorded
  }

  /** Starts the cluster services; call it once the log and the records are open. @throws StartError */
  async start({ storage, barrier }: { readonly storage: Storage; readonly barrier: Barrier }): Promise<void> {
    const { nodeId, clusterId } = storage.driver.status();
    this.membershipList.useLog(storage);
    this.#checkName(nodeId);
    this.#services = new ClusterServices({
      host: this.#host,
      local: { storage, barrier, nodeId, clusterId },
      membershipList: this.membershipList,
      heartbeats: this.heartbeats,
      standbys: this.standbys,
      client: this.#client,
      port: this.#port,
      pause: this.#pause,
      isRemoved: () => this.#removed,
      onRemoved: (confIndex) => void this.#endMembership(confIndex),
      onMembers: () => this.#followMembers(),
      unconnected: () => this.#raftPeers.unconnected,
    });
    this.#raftPeers.followMembers();
    await this.#services.start();
  }

  /** A renamed node could be mistaken for another member: only a sole member may change its name. @throws StartError */
  #checkName(nodeId: NodeId): void {
    const { node_id: name } = this.#host.config;
    const former = this.membershipList.member(nodeId)?.name;
    if (former === undefined || former === name) return;
    if (this.membershipList.knownMembers.length > 1)
      throw new StartError(
        `node_id is ${name}, but data_dir belongs to the member ${former} of a cluster: set node_id to ${former}, ` +
          `or to rename the node, remove ${former} from the cluster, empty data_dir and start the node under its new name`,
      );
    this.#host.log.warn({ former, name }, 'node_id was changed: this node, the only member of its cluster, has a new name');
  }

  /** Runs one round of maintenance; a timer does so every few seconds. */
  async maintain(): Promise<void> {
    await this.#services?.maintenance.round();
  }

  /** Returns the signing authority; undefined before it is created. @throws StoreError */
  async signingAuthority(): Promise<ClusterAuthority | undefined> {
    return this.#services?.maintenance.signingAuthority();
  }

  /** Makes the active node, which may be this node, write the authority's record again. @throws ClusterCallError, StoreError */
  async restoreAuthority(authority: ClusterAuthority): Promise<void> {
    if (this.#services === undefined) throw new StoreError('not_leader', 'no active node is known');
    return this.#services.maintenance.restoreAuthority(authority);
  }

  reportOf(id: NodeId, timeoutMs: number): Promise<object> {
    return askForReport(this.#client, id, timeoutMs);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#services?.stop();
    this.#client.close();
    this.#raftPeers.close();
    await this.#port.close();
  }

  readonly #pause = async (ms: number): Promise<void> => {
    await pause(Math.max(0, ms), undefined, { signal: this.#closing.signal }).catch(() => undefined);
  };

  #followMembers(): void {
    this.#raftPeers.followMembers();
    this.#client.recheck();
    this.#port.recheck();
  }

  /**
   * Ends the process, and records that later starts on this data directory must fail. Without the record, each restart would raise the
   * incarnation's number, until it was higher than the number that the peers know.
   */
  async #stopExcluded(error: Error): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    const { directory, log, onFatal } = this.#host;
    const recorded = recordExclusion(directory, overtakenFile, { reason: error.message }).catch((cause: unknown) =>
      log.error({ reason: reasonOf(cause) }, 'could not record that data_dir is unusable: do not start this node again with it'),
    );
    await Promise.race([recorded, pause(exclusionMsMax)]); // a stalled disk must not keep the process alive
    onFatal(error);
  }

  async #endMembership(atIndex: LogIndex): Promise<void> {
    if (this.#removed) return;
    this.#removed = true;
    this.#host.onRemoved();
    this.#services?.removed();
    await recordExclusion(this.#host.directory, removalFile, { atIndex });
  }
}
