import {
  type Clock,
  CodecError,
  decodeBatch,
  type Message,
  type NodeId,
  type Transport,
  type TransportReceiver,
} from '@transitd/raft-core';
import type { WebSocket } from 'ws';
import type { Member } from '../membership/membership.ts';
import type { ConnectionEnding } from './connection-ending.ts';
import { type Incarnation, Incarnations, type IncarnationVerdict } from './incarnations.ts';
import type { LocalEnd } from './peer-connection.ts';
import { PeerLink, type PeerLinkOptions, type PeerObserver, type TransportLimits, transportLimits } from './peer-link.ts';

interface WebSocketTransportOptions extends LocalEnd {
  readonly self: NodeId;
  readonly observer: PeerObserver;
  readonly limits?: Partial<TransportLimits>;
  /** Schedules the checks of the connections; a Node timer by default. */
  readonly every?: Clock['every'];
}

/** Hears nothing: before the driver has begun to receive, and after the end. */
const nobody: TransportReceiver = { message: () => undefined, unreachable: () => undefined, refused: () => undefined };

/**
 * Carries Raft messages as frames on WebSockets: one connection for each ordered pair of members, opened by the sender. Messages sent while
 * there is no connection are lost, which the `Transport` port allows.
 */
export class WebSocketTransport implements Transport {
  readonly #options: WebSocketTransportOptions;
  readonly #limits: TransportLimits;
  readonly #links: PeerLinkOptions;
  readonly #outgoing = new Map<NodeId, PeerLink>();
  readonly #incoming = new Map<NodeId, Incoming>();
  /** Peers that have themselves closed the newest connection that they opened. */
  readonly #closedByPeer = new Set<NodeId>();
  readonly #incarnations = new Incarnations();
  /** Nonce of the incarnation that was refused last, by peer. */
  readonly #refused = new Map<NodeId, string>();
  readonly #stopTicks: () => void;
  #receiver = nobody;
  #closed = false;

  constructor(options: WebSocketTransportOptions) {
    this.#options = options;
    this.#limits = { ...transportLimits, ...options.limits };
    this.#links = { ...options, limits: this.#limits, transport: this };
    this.#stopTicks = (options.every ?? everyMs)(this.#limits.tickMs, () => this.#tick());
  }

  receive(receiver: TransportReceiver): void {
    this.#receiver = receiver;
  }

  /** Sets the peers, ignoring this node: connects to new ones and disconnects from those that are gone. */
  members(list: readonly Member[]): void {
    if (this.#closed) return;
    const peers = new Map(list.filter(({ id }) => id !== this.#options.self).map((member) => [member.id, member]));
    for (const [id, link] of this.#outgoing) {
      if (peers.has(id)) continue;
      link.close();
      this.#outgoing.delete(id);
    }
    for (const [id, member] of peers) {
      const link = this.#outgoing.get(id);
      if (link !== undefined) link.update(member);
      else this.#outgoing.set(id, new PeerLink(member, this.#links));
    }
  }

  /** Peers without an outgoing connection now. */
  get unconnected(): readonly NodeId[] {
    return [...this.#outgoing].flatMap(([id, link]) => (link.isConnected ? [] : [id]));
  }

  /** Whether this node and that peer are connected both ways, and the peer reads messages of that type. */
  carries(type: Message['type'], to: NodeId): boolean {
    return this.#incoming.has(to) && this.#outgoing.get(to)?.carries(type) === true;
  }

  send(messages: readonly Message[]): void {
    for (const [id, toPeer] of Map.groupBy(messages, ({ to }) => to)) this.#outgoing.get(id)?.send(toPeer);
  }

  /** Compares an incarnation of a peer with those that connected before. */
  judge(from: NodeId, incarnation: Incarnation): IncarnationVerdict {
    const verdict = this.#incarnations.judge(from, incarnation, this.#incoming.has(from));
    if (verdict !== 'in order' && this.#refused.get(from) !== incarnation.nonce) {
      this.#refused.set(from, incarnation.nonce);
      this.#options.observer.refusedIncarnation(from, verdict);
    }
    return verdict;
  }

  /** Accepts a connection that `from` opened, and closes the earlier connection from `from`. */
  accept(socket: WebSocket, from: NodeId, incarnation: Incarnation, ending: ConnectionEnding): void {
    if (this.#closed) {
      socket.terminate();
      return;
    }
    this.#incarnations.connected(from, incarnation);
    this.#incoming.get(from)?.socket.terminate();
    const incoming: Incoming = { socket, idleTicks: 0 };
    this.#incoming.set(from, incoming);
    this.#closedByPeer.delete(from);
    socket.binaryType = 'nodebuffer';
    const resetIdle = (): void => {
      incoming.idleTicks = 0;
    };
    socket.on('ping', resetIdle);
    socket.on('message', (frame, isBinary) => {
      // A frame that had arrived on a connection before a newer one replaced it would overtake the messages of the newer connection.
      if (this.#incoming.get(from) !== incoming) return;
      resetIdle();
      const messages = isBinary ? messagesIn(frame as Buffer, { from, to: this.#options.self }) : undefined;
      if (messages === undefined) socket.terminate();
      else for (const message of messages) this.#receiver.message(message);
    });
    socket.on('error', () => undefined); // `close` follows
    socket.on('close', () => {
      if (this.#incoming.get(from) !== incoming) return;
      this.#incoming.delete(from);
      if (ending.byPeer) this.#closedByPeer.add(from);
      this.refused(from);
    });
  }

  /** Closes every connection; nothing is sent or received afterwards. */
  close(): void {
    this.#closed = true;
    this.#stopTicks();
    this.#receiver = nobody;
    for (const link of this.#outgoing.values()) link.close();
    for (const { socket } of this.#incoming.values()) socket.terminate();
    this.#outgoing.clear();
  }

  /** A connection to a peer ended, or an attempt to connect failed. */
  unreachable(id: NodeId): void {
    this.#receiver.unreachable(id);
  }

  /** Both connections are gone, both closed by the peer, which refuses a new one: its process has probably ended. */
  refused(id: NodeId): void {
    if (this.#closedByPeer.has(id) && this.#outgoing.get(id)?.isRefused === true) this.#receiver.refused(id);
  }

  #tick(): void {
    for (const link of this.#outgoing.values()) link.tick();
    for (const incoming of this.#incoming.values()) {
      if (++incoming.idleTicks >= this.#limits.idleTicksMax) incoming.socket.terminate();
    }
  }
}

const everyMs: Clock['every'] = (intervalMs, task) => {
  const timer = setInterval(task, intervalMs);
  return () => clearInterval(timer);
};

interface Incoming {
  readonly socket: WebSocket;
  idleTicks: number;
}

/** Returns the messages of a frame; undefined when it is malformed or any message is not from `from` to `to`. */
function messagesIn(frame: Uint8Array, { from, to }: Pick<Message, 'from' | 'to'>): readonly Message[] | undefined {
  let messages: readonly Message[];
  try {
    messages = decodeBatch(frame);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return undefined;
  }
  return messages.every((message) => message.from === from && message.to === to) ? messages : undefined;
}
