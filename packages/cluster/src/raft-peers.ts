import { randomBytes } from 'node:crypto';
import { freshForIntervals } from '@transitd/health';
import { systemClock } from '@transitd/process';
import type { LogIndex, NodeId } from '@transitd/raft-core';
import type { Exclusion } from './membership/exclusion.ts';
import type { MembershipList } from './membership/membership-list.ts';
import { askByMessage, confirmWithinMs, PeerCalls } from './node-calls.ts';
import { PeerLog } from './peer-log.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import { Pauses } from './ports/pauses.ts';
import type { Storage } from './ports/storage-port.ts';
import { Standbys } from './standbys/standbys.ts';
import { ClusterClient } from './transport/cluster-client.ts';
import type { Incarnation } from './transport/incarnations.ts';
import { clusterListenAddress, localAddressFor } from './transport/listen-address.ts';
import { WebSocketTransport } from './transport/raft-transport.ts';

/** The connections to the other members, for Raft messages and for calls. */
export class RaftPeers {
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
    }: { readonly self: NodeId; readonly incarnation: number; readonly exclusion: Pick<Exclusion, 'exclude'> },
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
      clock: systemClock,
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
