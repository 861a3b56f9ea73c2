import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Barrier } from '@transitd/barrier';
import { LogLimit, reasonOf } from '@transitd/process';
import { type DriverStatus, LogDamage, type LogIndex, type NodeId } from '@transitd/raft-core';
import { StorageDamaged, StoreError } from '@transitd/storage-fsm';
import { confirmWithinMs } from './calls.ts';
import { ClusterPort } from './cluster-port.ts';
import { ClusterServices } from './cluster-services.ts';
import type { JoinDesk } from './join/join-desk.ts';
import type { AuthorityRotation } from './maintenance/authority-rotation.ts';
import type { Autopilot } from './maintenance/autopilot.ts';
import type { MemberOperations } from './maintenance/member-operations.ts';
import type { ClusterAuthority } from './membership/authority.ts';
import { overtakenFile, recordExclusion, removalFile } from './membership/exclusion.ts';
import { type NodeIdentity, readIdentity } from './membership/identity.ts';
import type { Member } from './membership/membership.ts';
import { MembershipList } from './membership/membership-list.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import type { MembershipPorts, Storage } from './ports/storage-port.ts';
import { Heartbeats } from './standbys/heartbeats.ts';
import { Standbys } from './standbys/standbys.ts';
import { ClusterClient } from './transport/cluster-client.ts';
import type { ClusterListenerOptions } from './transport/cluster-listener.ts';
import type { Forwarder } from './transport/forwarder.ts';
import type { Run } from './transport/incarnations.ts';
import { WebSocketTransport } from './transport/raft-transport.ts';

/** How long the active node may take to open its state for a snapshot. */
const snapshotHeadMs = 10_000;
/** How long a mark may take before the process ends without it. */
const exclusionMsMax = 2_000;

const oldCopy =
  'a copy of what another process runs on, or was set back to an earlier state. Remove this node from the cluster and let it join again with an empty data_dir.';

/** What a node does together with others: their messages, echoes, forwarded requests, and the list of members. */
export class Cluster {
  readonly membershipList: MembershipList;
  readonly heartbeats: Heartbeats;
  readonly standbys: Standbys;
  readonly #host: ClusterHost;
  readonly #client: ClusterClient;
  readonly #logLimit: LogLimit;
  readonly #port: ClusterPort;
  #removed: boolean;
  #isGivenUp = false;
  /** Since its log was opened. */
  #run: Run | undefined;
  #transport: WebSocketTransport | undefined;
  /** Once its log is open. */
  #services: ClusterServices | undefined;
  /** Ends what waits for time to pass. */
  readonly #closing = new AbortController();

  private constructor(host: ClusterHost, identity: NodeIdentity | undefined, removed: boolean) {
    const { cluster_heartbeat_interval: intervalMs } = host.config;
    this.#host = host;
    this.#logLimit = new LogLimit({ log: host.log, nowMs: () => performance.now() });
    this.membershipList = new MembershipList(host.directory, identity);
    this.#removed = removed;
    this.heartbeats = new Heartbeats(intervalMs, performance.now());
    this.#port = new ClusterPort({
      config: host.config,
      log: host.log,
      membershipList: this.membershipList,
      raft: (socket, from, run) => {
        if (this.#transport === undefined) socket.terminate();
        else this.#transport.accept(socket, from, run);
      },
      judge: (from, run) => this.#transport?.judge(from, run) ?? 'in order', // there is nobody yet who would hear it
      isLeaderless: () => this.#services?.isLeaderless ?? false,
    });
    this.#client = new ClusterClient({
      identity: () => this.membershipList.requireIdentity(),
      run: () => {
        if (this.#run === undefined) throw new Error('a node calls others when its log is open');
        return this.#run;
      },
      member: (id) => this.membershipList.member(id),
      localAddress: this.#port.localAddress,
    });
    this.standbys = new Standbys({
      servesForMs: 2 * intervalMs,
      nowMs: () => performance.now(),
      pause: this.#pause,
      ask: (id, index) => this.#confirmed(id, index),
    });
  }

  /** Reads by what this node is known to others. @throws StartError; StorageDamaged when others know a later run of this node */
  static async open(host: ClusterHost): Promise<Cluster> {
    if (existsSync(join(host.directory, overtakenFile))) throw new StorageDamaged(`data_dir is ${oldCopy}`);
    const identity = await readIdentity(host.directory);
    return new Cluster(host, identity, existsSync(join(host.directory, removalFile)));
  }

  /** Whether this node was told that it is no member any more. */
  get removed(): boolean {
    return this.#removed;
  }

  /** The member that is believed to be active; never this node. */
  get activeMember(): Member | undefined {
    return this.#services?.activeMember;
  }

  get forwarder(): Forwarder | undefined {
    return this.#services?.forwarder;
  }

  /** What an operator changes about the members; only on the leader does it succeed. */
  get operator(): MemberOperations | undefined {
    return this.#services?.operator;
  }

  get autopilot(): Autopilot | undefined {
    return this.#services?.autopilot;
  }

  get rotation(): AuthorityRotation | undefined {
    return this.#services?.rotation;
  }

  get joinDesk(): JoinDesk | undefined {
    return this.#services?.joinDesk;
  }

  /** Whether its records were shown to be those of the active node. */
  get agrees(): boolean {
    return this.#services?.stateComparison.verdict === 'same';
  }

  /** Whether they were shown to be others: it serves nothing from them until its next start, as the active node neither. */
  get differs(): boolean {
    return this.#services?.stateComparison.verdict === 'different';
  }

  get canaryUtcMs(): number | undefined {
    return this.#services?.canary.utcMs;
  }

  /** Who takes in what other members hand on. */
  serveForwarded(forwarded: ClusterListenerOptions['forwarded']): void {
    this.#port.serveForwarded(forwarded);
  }

  /** For the driver of this node. */
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
        this.#host.log.warn({ reason: error.message }, 'a snapshot did not arrive; it is asked for again'),
      peers: ({ nodeId, incarnation, snapshots, random }) => {
        const run = { incarnation, nonce: randomBytes(16).toString('hex') };
        this.#run = run;
        this.#transport = new WebSocketTransport({
          self: nodeId,
          run,
          identity: () => this.membershipList.requireIdentity(),
          localAddress: this.#port.localAddress,
          onRemoved: () => this.#services?.removedByNotice(),
          onForeignVersion: (peer) =>
            this.#host.log.error({ peer }, 'that node reads no frames of this version: upgrade by one release at a time'),
          onEarly: (peer) =>
            this.#host.log.warn(
              { peer },
              'another process that runs as this node is still connected to that node, which hears only that one',
            ),
          onOvertaken: (peer, by) => {
            const knows =
              by === 'later' ? 'knows a later run of this node' : 'is connected to another process that runs as this node';
            void this.#giveUp(new StorageDamaged(`node ${peer} ${knows}: data_dir is ${oldCopy}`));
          },
          onUnreachable: (peer, reason) => this.#peerUnreachable(peer, reason),
          onReachable: (peer, address) => this.#peerReachable(peer, address),
          onStranger: (peer, verdict) =>
            this.#host.log.warn(
              { peer, verdict },
              'a process that runs as that node was refused: another one does, or its disk was set back',
            ),
        });
        return { transport: this.#transport, snapshots, random };
      },
      onRemoved: (atIndex) => void this.#endMembership(atIndex),
      removedAt: (id) => this.membershipList.removedAt(id),
      promotes: (id) => this.membershipList.member(id)?.nonVoter === false,
    };
  }

  /** The configuration in force, or the newest committed one, has changed. */
  configurationChanged(): void {
    this.membershipList.configured();
    this.#followMembers();
    this.#services?.configurationChanged();
  }

  /** Role, term, leader or readiness has changed. */
  statusChanged(status: DriverStatus): void {
    this.#services?.statusChanged(status);
  }

  /** The node is unsealed, or sealed: what was heard before lets it serve nothing. */
  sealChanged(): void {
    this.heartbeats.restart(performance.now());
    this.#services?.sealChanged();
  }

  /** Begins to take part; the log and the records are open. @throws StartError */
  async start({ storage, barrier }: { readonly storage: Storage; readonly barrier: Barrier }): Promise<void> {
    const { nodeId, clusterId } = storage.driver.status();
    this.membershipList.follow(storage);
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
      unconnected: () => this.#transport?.unconnected ?? [],
    });
    this.#transport?.members(this.#peers);
    await this.#services.start();
  }

  /** What the active node does for the cluster, and others for themselves; it happens by itself every few seconds. */
  async maintain(): Promise<void> {
    await this.#services?.maintenance.round();
  }

  /** The authority that signs; undefined while there is none. @throws StoreError */
  async signingAuthority(): Promise<ClusterAuthority | undefined> {
    return this.#services?.maintenance.signingAuthority();
  }

  /** The active node shall write the authority again, this one or another. @throws ClusterCallError, StoreError */
  async restoreAuthority(authority: ClusterAuthority): Promise<void> {
    if (this.#services === undefined) throw new StoreError('not_leader', 'no active node is known');
    return this.#services.maintenance.restoreAuthority(authority);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#services?.stop();
    this.#client.close();
    this.#transport?.close();
    await this.#port.close();
  }

  readonly #pause = async (ms: number): Promise<void> => {
    await pause(Math.max(0, ms), undefined, { signal: this.#closing.signal }).catch(() => undefined);
  };

  #peerUnreachable(peer: NodeId, reason: string): void {
    const { name, clusterAddress: address } = this.membershipList.member(peer) ?? {};
    const from = this.#port.localAddress ?? 'any address';
    this.#logLimit.write('warn', `unreachable ${peer}`, { peer, name, address, from, reason }, 'a peer cannot be reached');
  }

  #peerReachable(peer: NodeId, address: string): void {
    this.#logLimit.ended(`unreachable ${peer}`);
    const { name } = this.membershipList.member(peer) ?? {};
    this.#logLimit.write('info', `reachable ${peer} ${address}`, { peer, name, address }, 'connected to a peer');
  }

  /** Not who had this node's address before it: a node that follows the log from its beginning meets its own past. */
  get #peers(): readonly Member[] {
    return this.membershipList.known.filter(({ clusterAddress }) => clusterAddress !== this.#host.config.cluster_addr);
  }

  #followMembers(): void {
    this.#transport?.members(this.#peers);
    this.#client.recheck();
    this.#port.recheck();
  }

  /** What a standby has applied, once that includes `index`. @throws ClusterCallError */
  async #confirmed(id: NodeId, index: LogIndex): Promise<LogIndex> {
    const timeoutMs = confirmWithinMs + this.#host.config.cluster_heartbeat_interval;
    const { status, json } = await this.#client.post(id, '/cluster/confirm', { json: { index }, timeoutMs });
    if (status !== 200) throw new Error(`node ${id} did not confirm`);
    return (json as { appliedIndex: LogIndex }).appliedIndex;
  }

  /** Storage has failed. A log that lacks what this node acknowledged lacks it at the next start too, when nobody may notice. */
  storageFailed(error: Error): void {
    if (error instanceof LogDamage) void this.#giveUp(error);
    else if (!this.#isGivenUp) this.#host.onFatal(error); // else it ends as soon as that is kept
  }

  /** For good: each start raises the number of the run, and would bring it nearer to one that nobody has met. */
  async #giveUp(error: Error): Promise<void> {
    if (this.#isGivenUp) return;
    this.#isGivenUp = true;
    const { directory, log, onFatal } = this.#host;
    const left = recordExclusion(directory, overtakenFile, { reason: error.message }).catch((cause: unknown) =>
      log.error({ reason: reasonOf(cause) }, 'what this node was told of its disk could not be kept for later starts'),
    );
    await Promise.race([left, pause(exclusionMsMax)]); // a disk that hangs does not keep the process
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
