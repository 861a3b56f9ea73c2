import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { freshForIntervals } from '@transitd/health';
import { reasonOf } from '@transitd/process';
import type { LogIndex, NodeId } from '@transitd/raft-core';
import { StorageDamaged } from '@transitd/storage-fsm';
import { Exclusion, overtakenFile, recordExclusion, removalFile, staleDataDirectory } from './membership/exclusion.ts';
import { type NodeIdentity, readIdentity } from './membership/identity.ts';
import { loadX509 } from './membership/load-x509.ts';
import { MembershipList } from './membership/membership-list.ts';
import { askByMessage, confirmWithinMs, PeerCalls } from './node-calls.ts';
import { PeerLog } from './peer-log.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import { Pauses } from './ports/pauses.ts';
import type { MembershipPorts, Storage } from './ports/storage-port.ts';
import { lowDisksThatBlock } from './standbys/low-disks.ts';
import { PermissionClock } from './standbys/permission-clock.ts';
import { Standbys } from './standbys/standbys.ts';
import type { ClusterHandler } from './transport/cluster-call.ts';
import { ClusterClient } from './transport/cluster-client.ts';
import type { Incarnation } from './transport/incarnations.ts';
import { clusterListenAddress, localAddressFor } from './transport/listen-address.ts';
import { WebSocketTransport } from './transport/web-socket-transport.ts';

/** Deadline for the head of the response with a snapshot. The leader opens its state before it sends the head. */
const snapshotHeadMs = 10_000;

export const snapshotPath = '/cluster/snapshot';

/** Returns the handler of the call with which another node fetches a snapshot. */
export const snapshotHandler =
  (snapshots: Pick<Storage['snapshots'], 'stream'>): ClusterHandler =>
  async ({ from, query }) => {
    const index = Number(query.get('index') ?? Number.NaN);
    return Number.isSafeInteger(index) && index >= 0 ? { stream: snapshots.stream(from, index) } : { status: 400, json: {} };
  };

/** Everything that consensus needs of the other members; exists before the log of this node is open. */
export class RaftConnections {
  readonly membershipList: MembershipList;
  readonly #host: ClusterHost;
  readonly #exclusion: Exclusion;
  #removed: boolean;
  #recorded: Promise<void> = Promise.resolve();
  /** The log names this node, so its peers exist only once that is open. */
  #peers: RaftPeers | undefined;

  private constructor(host: ClusterHost, identity: NodeIdentity | undefined, removed: boolean) {
    this.#host = host;
    this.#exclusion = new Exclusion(host);
    this.membershipList = new MembershipList(host.directory, identity);
    this.#removed = removed;
    host.events.on('configuration', () => {
      this.membershipList.configurationChanged();
      host.events.emit('members');
    });
  }

  /**
   * Reads this node's identity.
   * @throws StartError; StorageDamaged when an earlier start recorded that this disk was copied or rolled back
   */
  static async open(host: ClusterHost): Promise<RaftConnections> {
    if (existsSync(join(host.directory, overtakenFile))) throw new StorageDamaged(`data_dir is ${staleDataDirectory}`);
    await loadX509(); // later, a leader would miss heartbeats
    const identity = await readIdentity(host.directory);
    return new RaftConnections(host, identity, existsSync(join(host.directory, removalFile)));
  }

  get removed(): boolean {
    return this.#removed;
  }

  /** The other members; only once this node's log is open. */
  get peers(): RaftPeers {
    if (this.#peers === undefined) throw new Error('a node calls others only once its log is open');
    return this.#peers;
  }

  /** The ports for this node's Raft driver. */
  get ports(): MembershipPorts {
    const { membershipList } = this;
    return {
      driver: {
        removed: this.#removed,
        onRemoved: (atIndex) => this.endMembership(atIndex),
        removedAt: (id) => membershipList.removedAt(id),
        promotes: (id) => membershipList.member(id)?.nonVoter === false,
      },
      link: {
        open: async (from, index, signal) => {
          const path = `${snapshotPath}?index=${index}`;
          const answer = await this.peers.client.request(from, { method: 'GET', path, signal, timeoutMs: snapshotHeadMs });
          if (answer.status === 200) return answer.body;
          answer.body.destroy();
          throw new Error(`node ${from} answered the request for a snapshot with status ${answer.status}`);
        },
      },
      onFetchFailed: (error) =>
        this.#host.log.warn({ reason: error.message }, 'could not fetch a snapshot from the leader; retrying'),
      peers: ({ nodeId, incarnation, snapshots, random }) => {
        this.#peers = new RaftPeers(this.#host, membershipList, { self: nodeId, incarnation, exclusion: this.#exclusion });
        return { transport: this.#peers.transport, snapshots, random };
      },
      lowDisks: (driver, diskLow) => {
        const { role, conf } = driver.consensus();
        if (role !== 'leader') return [];
        const { nodeId } = driver.status();
        const isLow = (id: number): boolean => (id === nodeId ? diskLow : this.peers.standbys.report(id)?.diskLow === true);
        return lowDisksThatBlock(conf, isLow).map((id) => membershipList.member(id)?.name ?? `node ${id}`);
      },
    };
  }

  /** @see Exclusion.storageFailed */
  storageFailed(error: Error): void {
    this.#exclusion.storageFailed(error);
  }

  /** Ends the membership of this node, for all later starts. @param atIndex - index of the configuration that this node knows */
  endMembership(atIndex: LogIndex): void {
    if (this.#removed) return;
    this.#removed = true;
    this.#host.events.emit('removed');
    const { directory, log } = this.#host;
    this.#recorded = recordExclusion(directory, removalFile, { atIndex }).catch((error: unknown) =>
      log.error(
        { reason: reasonOf(error) },
        'could not record that this node was removed: do not start it again with this data_dir',
      ),
    );
  }

  /** Resolves once the end of the membership is recorded, if it has ended. */
  async close(): Promise<void> {
    this.#peers?.close();
    await this.#recorded;
  }
}

/** The connections to the other members, for Raft messages and for calls. */
class RaftPeers {
  readonly transport: WebSocketTransport;
  /** For the cluster's own calls. */
  readonly client: ClusterClient;
  /** Those that do not depend on Raft. */
  readonly calls: PeerCalls;
  readonly standbys: Standbys;
  /** End when this node closes. */
  readonly pauses = new Pauses();
  readonly #host: ClusterHost;
  readonly #membershipList: MembershipList;
  #driver: Pick<Storage['driver'], 'confirm'> | undefined;

  /** @param incarnation - the number of this incarnation, as stored at this start */
  constructor(
    host: ClusterHost,
    membershipList: MembershipList,
    {
      self,
      incarnation: number,
      exclusion,
    }: { readonly self: NodeId; readonly incarnation: number; readonly exclusion: Exclusion },
  ) {
    const { config, events } = host;
    const { cluster_heartbeat_interval: intervalMs } = config;
    this.#host = host;
    this.#membershipList = membershipList;
    const incarnation: Incarnation = { number, nonce: randomBytes(16).toString('hex') };
    const local = { members: membershipList, incarnation, localAddress: localAddressFor(clusterListenAddress(config).host) };
    this.transport = new WebSocketTransport({
      ...local,
      self,
      observer: new PeerLog(host, membershipList, exclusion),
    });
    this.client = new ClusterClient(local);
    this.calls = new PeerCalls(this.client);
    this.standbys = new Standbys({
      servesForMs: freshForIntervals * intervalMs,
      clock: new PermissionClock(events),
      pauses: this.pauses,
      confirm: (id, index) => this.#confirm(id, index, confirmWithinMs + intervalMs),
    });
    events.on('members', () => {
      this.followMembers();
      this.client.recheck();
    });
  }

  /** From now on, asks nodes to confirm by messages on the Raft connections. */
  useDriver(driver: Pick<Storage['driver'], 'confirm'>): void {
    this.#driver = driver;
  }

  /** Connects to the present members. */
  followMembers(): void {
    // A node that reads the log from its beginning may find a former member whose address is now this node's own.
    const own = this.#host.config.cluster_addr;
    this.transport.members(this.#membershipList.knownMembers.filter(({ clusterAddress }) => clusterAddress !== own));
  }

  /** A node of release 0.1.0, and one without a connection now, is asked by a call. */
  #confirm(id: NodeId, index: LogIndex, timeoutMs: number): Promise<LogIndex> {
    if (this.#driver !== undefined && this.transport.carries('Confirm', id)) return askByMessage(this.#driver, id, index);
    return this.calls.confirm(id, index, timeoutMs);
  }

  close(): void {
    this.pauses.end();
    this.client.close();
    this.transport.close();
  }
}
