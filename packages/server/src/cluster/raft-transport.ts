import type { Duplex } from 'node:stream';
import {
  type Clock,
  CodecError,
  decodeBatch,
  encodeBatch,
  encodeMessage,
  frameBytesMax,
  type Message,
  type NodeId,
  type Transport,
  type TransportReceiver,
  wireVersions,
} from '@transitd/raft-core';
import { WebSocket } from 'ws';
import { raftPath } from './cluster-listener.ts';
import type { NodeIdentity } from './identity.ts';
import { certificatesOf, type Member } from './membership.ts';
import { connectToPeer } from './peer-connection.ts';
import { raftProtocols } from './raft-protocol.ts';

export interface TransportLimits {
  /** How often connections are looked at; they are pinged every second time. */
  readonly tickMs: number;
  /** A connection without an answer to its pings for so many looks has ended. */
  readonly silentTicksMax: number;
  /** A peer's connection on which nothing arrives for so many looks has ended. */
  readonly idleTicksMax: number;
  /** Above this, messages to a peer are dropped, as on any slow network. */
  readonly unsentBytesMax: number;
  /** What a slow network still carries per look: the answer to a ping waits behind what was sent before. */
  readonly slowBytesPerTick: number;
  readonly reconnectMsMin: number;
  readonly reconnectMsMax: number;
  readonly connectMsMax: number;
}

/** Looks are counted, not time: a process that stood still takes the first one for one, and reads what waits for it before the next. */
export const transportLimits: TransportLimits = {
  tickMs: 500,
  silentTicksMax: 5,
  idleTicksMax: 10,
  unsentBytesMax: 8 * 2 ** 20,
  slowBytesPerTick: 512 * 1024,
  reconnectMsMin: 50,
  reconnectMsMax: 1_000,
  connectMsMax: 2_500,
};

export interface WebSocketTransportOptions {
  readonly self: NodeId;
  readonly identity: () => NodeIdentity;
  readonly localAddress?: string | undefined;
  /** A member answered that this node was removed. */
  readonly onRemoved?: () => void;
  /** A member reads no format of frames that this node writes; told once until it does. */
  readonly onForeignVersion?: (peer: NodeId) => void;
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
  readonly #outgoing = new Map<NodeId, Link>();
  readonly #incoming = new Map<NodeId, Incoming>();
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
      else this.#outgoing.set(id, new Link(member, this.#linkOptions(id)));
    }
  }

  send(messages: readonly Message[]): void {
    for (const [id, toPeer] of Map.groupBy(messages, ({ to }) => to)) this.#outgoing.get(id)?.send(toPeer);
  }

  /** Takes in a connection that `from` opened; one that it had before ends. */
  accept(socket: WebSocket, from: NodeId): void {
    if (this.#closed) {
      socket.terminate();
      return;
    }
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

  #linkOptions(id: NodeId): LinkOptions {
    const { identity, localAddress, onRemoved, onForeignVersion } = this.#options;
    return {
      identity,
      localAddress,
      limits: this.#limits,
      unreachable: () => this.#receiver?.unreachable(id),
      removed: () => onRemoved?.(),
      foreignVersion: () => onForeignVersion?.(id),
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

interface LinkOptions {
  readonly identity: () => NodeIdentity;
  readonly localAddress: string | undefined;
  readonly limits: TransportLimits;
  readonly unreachable: () => void;
  readonly removed: () => void;
  readonly foreignVersion: () => void;
}

/** The way to one peer; connects again and again. */
class Link {
  readonly #options: LinkOptions;
  #member: Member;
  #socket: WebSocket;
  /** What the peer showed on the connection in force. */
  #certificate: string | undefined;
  #retry: NodeJS.Timeout | undefined;
  /** Attempts since a connection lasted. */
  #attempts = 0;
  #ticks = 0;
  /** Looks since a ping was answered, and the most that waited to be sent meanwhile. */
  #silentTicks = 0;
  #waitedBytes = 0;
  #toldOfVersion = false;
  #closed = false;

  constructor(member: Member, options: LinkOptions) {
    this.#member = member;
    this.#options = options;
    this.#socket = this.#connect();
  }

  update(member: Member): void {
    const moved = member.clusterAddress !== this.#member.clusterAddress;
    this.#member = member;
    if (moved || (this.#certificate !== undefined && !certificatesOf(member).includes(this.#certificate)))
      this.#socket.terminate();
  }

  send(messages: readonly Message[]): void {
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return;
    for (const frame of framesOf(messages)) {
      if (socket.bufferedAmount <= this.#options.limits.unsentBytesMax) socket.send(frame, ignoreError);
    }
  }

  tick(): void {
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return;
    const { silentTicksMax, slowBytesPerTick } = this.#options.limits;
    this.#waitedBytes = Math.max(this.#waitedBytes, socket.bufferedAmount);
    if (++this.#silentTicks >= silentTicksMax + this.#waitedBytes / slowBytesPerTick) socket.terminate();
    else if (++this.#ticks % 2 === 0) socket.ping(undefined, undefined, ignoreError);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#socket.terminate();
  }

  #connect(): WebSocket {
    const { identity, localAddress, limits } = this.#options;
    const { connectMsMax } = limits;
    this.#certificate = undefined;
    const socket = new WebSocket(`wss://${this.#member.clusterAddress}${raftPath}`, [...raftProtocols(wireVersions)], {
      perMessageDeflate: false,
      maxPayload: frameBytesMax,
      handshakeTimeout: connectMsMax,
      generateMask: () => undefined, // zeros: masks protect proxies that could read along, and TLS lets none
      createConnection: ((_options: unknown, callback: (error: Error | null, socket?: Duplex) => void) =>
        connectToPeer(this.#member, { identity: identity(), localAddress, connectMsMax }, (error, connection) => {
          this.#certificate = connection?.certificate;
          callback(error ?? null, connection?.socket);
        })) as never,
    });
    socket.on('open', () => {
      this.#toldOfVersion = false;
      this.#silentTicks = 0;
      this.#waitedBytes = 0;
    });
    socket.on('pong', () => {
      this.#silentTicks = 0;
      this.#waitedBytes = 0;
      this.#attempts = 0; // it has lasted
    });
    // A peer says nothing here but pongs.
    socket.on('message', () => socket.terminate());
    socket.on('unexpected-response', (_request, { statusCode }) => {
      socket.terminate();
      if (!this.#closed) this.#onRefusal(statusCode);
    });
    socket.on('error', ignoreError); // `close` follows
    socket.on('close', () => this.#onClose());
    return socket;
  }

  #onRefusal(status: number | undefined): void {
    if (status === 410) this.#options.removed();
    if (status !== 426 || this.#toldOfVersion) return;
    this.#toldOfVersion = true;
    this.#options.foreignVersion();
  }

  #onClose(): void {
    if (this.#closed) return;
    const waitMs = backoffMs(this.#attempts++, this.#options.limits, Math.random());
    this.#retry = setTimeout(() => {
      this.#socket = this.#connect();
    }, waitMs);
    this.#options.unreachable();
  }
}

/** How long to wait after so many attempts in vain: doubles each time; half of it by chance, so that peers do not come all at once. */
export function backoffMs(
  attempts: number,
  { reconnectMsMin, reconnectMsMax }: Pick<TransportLimits, 'reconnectMsMin' | 'reconnectMsMax'>,
  chance: number,
): number {
  const ms = Math.min(reconnectMsMax, reconnectMsMin * 2 ** attempts);
  return (ms * (1 + chance)) / 2;
}

const ignoreError = (): void => undefined;

/** All messages as one frame, or each as its own when that would be longer than a frame may be. */
function framesOf(messages: readonly Message[]): readonly Uint8Array[] {
  try {
    return [encodeBatch(messages)];
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return messages.map(encodeMessage);
  }
}
