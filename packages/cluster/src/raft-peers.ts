import { randomBytes } from 'node:crypto';
import { LogLimit } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { StorageDamaged } from '@transitd/storage-fsm';
import type { Member } from './membership/membership.ts';
import type { MembershipList } from './membership/membership-list.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import type { ClusterListenerOptions } from './transport/cluster-listener.ts';
import type { Incarnation, IncarnationVerdict } from './transport/incarnations.ts';
import { WebSocketTransport } from './transport/raft-transport.ts';

export interface RaftPeersOptions extends Pick<ClusterHost, 'config' | 'log'> {
  readonly membershipList: MembershipList;
  readonly localAddress: string | undefined;
  /** A member reported that this node was removed. */
  readonly onRemoved: () => void;
  /** A peer has found that this node's disk was copied or rolled back: the process must end. */
  readonly onOvertaken: (error: StorageDamaged) => void;
}

export const staleDataDirectory =
  'a copy of what another process runs on, or was rolled back to an earlier state. Remove this node from the cluster and let it join again with an empty data_dir.';

/**
 * The connections to the other members that carry Raft messages, and the log lines about them. This node connects as soon as its log is
 * open.
 */
export class RaftPeers {
  readonly #options: RaftPeersOptions;
  readonly #logLimit: LogLimit;
  #incarnation: Incarnation | undefined;
  #transport: WebSocketTransport | undefined;

  constructor(options: RaftPeersOptions) {
    this.#options = options;
    this.#logLimit = new LogLimit({ log: options.log, nowMs: () => performance.now() });
  }

  /** @param number - the number of this incarnation, as stored at this start */
  open(self: NodeId, number: number): WebSocketTransport {
    const { log, membershipList, localAddress, onRemoved, onOvertaken } = this.#options;
    const incarnation = { number, nonce: randomBytes(16).toString('hex') };
    this.#incarnation = incarnation;
    this.#transport = new WebSocketTransport({
      self,
      incarnation,
      identity: () => membershipList.requireIdentity(),
      localAddress,
      onRemoved,
      onForeignVersion: (peer) =>
        log.error(this.#named(peer), 'a peer reads no frames of this version: upgrade by one release at a time'),
      onEarlierConnected: (peer) =>
        log.warn(
          this.#named(peer),
          'another process that runs as this node is still connected to a peer, which refuses this one: stop one of them, or wait if this node has just been restarted',
        ),
      onOvertaken: (peer, by) => {
        const reason =
          by === 'later' ? 'knows a later incarnation of this node' : 'is connected to another process that runs as this node';
        onOvertaken(new StorageDamaged(`node ${peer} ${reason}: data_dir is ${staleDataDirectory}`));
      },
      onUnreachable: (peer, reason) => this.#unreachable(peer, reason),
      onReachable: (peer, address) => this.#reachable(peer, address),
      onRefusedIncarnation: (peer, verdict) =>
        log.warn(
          { ...this.#named(peer), verdict },
          'refused a process that runs as a peer: another process runs as that node too, or its disk was rolled back to an earlier state',
        ),
    });
    return this.#transport;
  }

  /** The incarnation of this node. */
  get incarnation(): Incarnation {
    if (this.#incarnation === undefined) throw new Error('a node calls others only once its log is open');
    return this.#incarnation;
  }

  /** Connects to the present members. */
  followMembers(): void {
    const { membershipList, config } = this.#options;
    // A node that reads the log from its beginning may find a former member whose address is now this node's own.
    const peers: readonly Member[] = membershipList.knownMembers.filter(
      ({ clusterAddress }) => clusterAddress !== config.cluster_addr,
    );
    this.#transport?.members(peers);
  }

  /** Members without an outgoing connection now. */
  get unconnected(): readonly NodeId[] {
    return this.#transport?.unconnected ?? [];
  }

  /** Compares an incarnation of a peer with those that connected before. Accepts every incarnation until the log of this node is open. */
  readonly judge = (from: NodeId, incarnation: Incarnation): IncarnationVerdict =>
    this.#transport?.judge(from, incarnation) ?? 'in order';

  /** Accepts a connection that a peer opened. */
  readonly accept: ClusterListenerOptions['raft'] = (socket, ...rest) => {
    if (this.#transport === undefined) socket.terminate();
    else this.#transport.accept(socket, ...rest);
  };

  close(): void {
    this.#transport?.close();
  }

  #named(peer: NodeId): { readonly peer: NodeId; readonly name: string | undefined } {
    return { peer, name: this.#options.membershipList.member(peer)?.name };
  }

  #unreachable(peer: NodeId, reason: string): void {
    const { membershipList, localAddress: from = 'any address' } = this.#options;
    const address = membershipList.member(peer)?.clusterAddress;
    const facts = { ...this.#named(peer), address, from, reason };
    this.#logLimit.write('warn', `unreachable ${peer}`, facts, 'a peer cannot be reached');
  }

  #reachable(peer: NodeId, address: string): void {
    this.#logLimit.ended(`unreachable ${peer}`);
    this.#logLimit.write('info', `reachable ${peer} ${address}`, { ...this.#named(peer), address }, 'connected to a peer');
  }
}
