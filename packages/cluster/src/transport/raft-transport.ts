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
import type { NodeIdentity } from '../membership/identity.ts';
import type { Member } from '../membership/membership.ts';
import { Incarnations, type IncarnationVerdict, type Run } from './incarnations.ts';
import { PeerLink, type PeerLinkOptions, type TransportLimits, transportLimits } from './peer-link.ts';

export interface WebSocketTransportOptions {
  readonly self: NodeId;
  /** This run of the node, by which peers tell it from others on copies of its disk. */
  readonly run: Run;
  readonly identity: () => NodeIdentity;
  readonly localAddress?: string | undefined;
  /** A member answered that this node was removed. */
  readonly onRemoved?: () => void;
  /** A member reads no format of frames that this node writes; told once until it does. */
  readonly onForeignVersion?: (peer: NodeId) => void;
  /** A member has met a later run of this node, or another of the same number; or it has long been connected to another one, and is still. */
  readonly onOvertaken?: (peer: NodeId, by: 'later' | 'other') => void;
  /** A member is still connected to another run of this node; told once until it takes this one in. */
  readonly onEarly?: (peer: NodeId) => void;
  /** A run of a member was refused here; told once of each. */
  readonly onStranger?: (peer: NodeId, verdict: Exclude<IncarnationVerdict, 'in order'>) => void;
  /** An attempt to connect to a member failed, or a connection to it ended. */
  readonly onUnreachable?: (peer: NodeId, reason: string) => void;
  /** There is a connection to a member, made to that address. */
  readonly onReachable?: (peer: NodeId, address: string) => void;
  readonly limits?: Partial<TransportLimits>;
  /** What the looks are taken by: a timer of Node unless given. */
  readonly every?: Clock['every'];
}

/**
 * Raft's messages as frames on WebSockets, one connection for each ordered pair of members, opened by the sender. What is sent while there
 * is no connection is lost, as the port allows.
 */
export class WebSocketTransport implements Transport {
  readonly #options: WebSocketTransportOptions;
  readonly #limits: TransportLimits;
  readonly #outgoing = new Map<NodeId, PeerLink>();
  readonly #incoming = new Map<NodeId, Incoming>();
  readonly #runs = new Incarnations();
  /** The nonce of the run of each peer that was refused last. */
  readonly #refused = new Map<NodeId, string>();
  readonly #stopLooking: () => void;
  #receiver: TransportReceiver | undefined;
  #closed = false;

  constructor(options: WebSocketTransportOptions) {
    this.#options = options;
    this.#limits = { ...transportLimits, ...options.limits };
    this.#stopLooking = (options.every ?? everyMs)(this.#limits.tickMs, () => this.#tick());
  }

  receive(receiver: TransportReceiver): void {
    this.#receiver = receiver;
  }

  /** From now on these are the peers, this node left out: connects to those that are new, and leaves those that are gone. */
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
      else this.#outgoing.set(id, new PeerLink(member, this.#linkOptions(id)));
    }
  }

  /** Peers to which there is no connection at the moment. */
  get unconnected(): readonly NodeId[] {
    return [...this.#outgoing].flatMap(([id, link]) => (link.isConnected ? [] : [id]));
  }

  send(messages: readonly Message[]): void {
    for (const [id, toPeer] of Map.groupBy(messages, ({ to }) => to)) this.#outgoing.get(id)?.send(toPeer);
  }

  /** What a run of a peer is to those that have connected before. */
  judge(from: NodeId, run: Run): IncarnationVerdict {
    const verdict = this.#runs.judge(from, run, this.#incoming.has(from));
    if (verdict !== 'in order' && this.#refused.get(from) !== run.nonce) {
      this.#refused.set(from, run.nonce);
      this.#options.onStranger?.(from, verdict);
    }
    return verdict;
  }

  /** Takes in a connection that `from` opened; one that it had before ends. */
  accept(socket: WebSocket, from: NodeId, run: Run): void {
    if (this.#closed) {
      socket.terminate();
      return;
    }
    this.#runs.connected(from, run);
    this.#incoming.get(from)?.socket.terminate();
    const incoming: Incoming = { socket, idleTicks: 0 };
    this.#incoming.set(from, incoming);
    socket.binaryType = 'nodebuffer';
    const heard = (): void => {
      incoming.idleTicks = 0;
    };
    socket.on('ping', heard);
    socket.on('message', (frame, isBinary) => {
      heard();
      const messages = isBinary ? messagesIn(frame as Buffer, { from, to: this.#options.self }) : undefined;
      if (messages === undefined) socket.terminate();
      else for (const message of messages) this.#receiver?.message(message);
    });
    socket.on('error', () => undefined); // `close` follows
    socket.on('close', () => {
      if (this.#incoming.get(from) === incoming) this.#incoming.delete(from);
    });
  }

  /** Ends every connection; nothing is sent or received any more. */
  close(): void {
    this.#closed = true;
    this.#stopLooking();
    this.#receiver = undefined;
    for (const link of this.#outgoing.values()) link.close();
    for (const { socket } of this.#incoming.values()) socket.terminate();
    this.#outgoing.clear();
  }

  #linkOptions(id: NodeId): PeerLinkOptions {
    const { run, identity, localAddress, onRemoved, onForeignVersion, onOvertaken, onEarly, onUnreachable, onReachable } =
      this.#options;
    return {
      run,
      identity,
      localAddress,
      limits: this.#limits,
      unreachable: (reason) => {
        this.#receiver?.unreachable(id);
        onUnreachable?.(id, reason);
      },
      reachable: (address) => onReachable?.(id, address),
      removed: () => onRemoved?.(),
      foreignVersion: () => onForeignVersion?.(id),
      overtaken: (by) => onOvertaken?.(id, by),
      early: () => onEarly?.(id),
    };
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

/** The messages of a frame when every one of them is what `from` may say to `to`; otherwise none. */
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
