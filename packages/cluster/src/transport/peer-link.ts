import { reasonOf } from '@transitd/process';
import {
  CodecError,
  encodeBatch,
  encodeMessage,
  frameBytesMax,
  isInVersion,
  type Message,
  type NodeId,
  wireVersions,
} from '@transitd/raft-core';
import { WebSocket } from 'ws';
import { certificatesOf, type Member } from '../membership/membership.ts';
import { Pauses } from '../ports/pauses.ts';
import { raftPath } from './cluster-listener.ts';
import { ConnectionEnding } from './connection-ending.ts';
import { type IncarnationVerdict, incarnationHeader, writeIncarnation } from './incarnations.ts';
import { openWebSocket } from './open-web-socket.ts';
import { connectToPeer, isConnectionRefused, type LocalEnd } from './peer-connection.ts';
import { raftProtocols, versionOf } from './raft-protocol.ts';

export interface TransportLimits {
  /** Interval at which all connections are checked; every second check sends a ping. */
  readonly tickMs: number;
  /** A connection whose pings stay unanswered for this many checks is closed. */
  readonly silentTicksMax: number;
  /** An incoming connection on which nothing arrives for this many checks is closed. */
  readonly idleTicksMax: number;
  /** Messages to a peer are dropped while more than this is buffered, as on any slow network. */
  readonly unsentBytesMax: number;
  /** Bytes that a slow network is assumed to carry between two checks: a pong is delayed by the bytes that were sent before its ping. */
  readonly slowBytesPerTick: number;
  readonly reconnectMsMin: number;
  readonly reconnectMsMax: number;
  readonly connectMsMax: number;
  /**
   * After this many refusals in a row because an earlier incarnation is still connected, another process must be running as this node: a
   * lost connection would have ended sooner.
   */
  readonly earlyMax: number;
}

/** Limits count checks, not time: after a pause the process counts one check, and reads what has arrived before the next. */
export const transportLimits: TransportLimits = {
  tickMs: 500,
  silentTicksMax: 5,
  idleTicksMax: 10,
  unsentBytesMax: 8 * 2 ** 20,
  slowBytesPerTick: 512 * 1024,
  reconnectMsMin: 50,
  reconnectMsMax: 1_000,
  connectMsMax: 2_500,
  earlyMax: 40,
};

/** Is told what happens between this node and its peers. */
export interface PeerObserver {
  /** A member reported that this node was removed. */
  removed(): void;
  /** A member and this node have no frame format in common. Reported once, and again only after they had one. */
  foreignVersion(peer: NodeId): void;
  /**
   * `later`: a member knows a later incarnation of this node, or another incarnation with the same number. `other`: the member stays
   * connected to another process that runs as this node.
   */
  overtaken(peer: NodeId, by: 'later' | 'other'): void;
  /** A member is still connected to an earlier incarnation of this node; reported once until it admits this one. */
  earlierConnected(peer: NodeId): void;
  /** This node refused an incarnation of a member; reported once for each. */
  refusedIncarnation(peer: NodeId, verdict: Exclude<IncarnationVerdict, 'in order'>): void;
  /** An attempt to connect to a member failed, or a connection to it ended. @param reason - with the address that was dialed */
  unreachable(peer: NodeId, reason: string): void;
  /** A connection to a member was made, to that address. */
  reachable(peer: NodeId, address: string): void;
}

export interface PeerLinkOptions extends LocalEnd {
  readonly limits: TransportLimits;
  readonly observer: PeerObserver;
  readonly transport: {
    unreachable(peer: NodeId): void;
    /** The peer itself closed the connection, and the attempt to connect again was refused; called for each such attempt. */
    refused(peer: NodeId): void;
  };
}

/** The outgoing connection to one peer; reconnects until closed. */
export class PeerLink {
  readonly #options: PeerLinkOptions;
  #member: Member;
  #socket: WebSocket;
  /** Fingerprint of the certificate that the peer showed on the present connection. */
  #certificate: string | undefined;
  /** How the newest connection to the peer ended. */
  #ending: Pick<ConnectionEnding, 'byPeer'> = { byPeer: false };
  /** The peer closed the newest connection itself, and refused the last attempt to open another one. */
  #isRefused = false;
  /** Between attempts to connect, until this link is closed. */
  readonly #pauses = new Pauses();
  /** Attempts to connect since the last connection that was stable. */
  #attempts = 0;
  #ticks = 0;
  /** Checks since a ping was answered, and the most bytes that were buffered since then. */
  #silentTicks = 0;
  #bufferedBytesMax = 0;
  /** Status of the refusal that was reported last; 0 once the peer has admitted this node. */
  #reportedStatus = 0;
  /** Refusals in a row because an earlier incarnation is still connected. */
  #early = 0;

  constructor(member: Member, options: PeerLinkOptions) {
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

  get isConnected(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** Whether the peer reads messages of that type, as far as this node is connected to it now. */
  carries(type: Message['type']): boolean {
    return this.isConnected && isInVersion(type, versionOf(this.#socket.protocol, wireVersions));
  }

  /** Whether the peer closed its connection and refused the last attempt to open another one. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  send(messages: readonly Message[]): void {
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return;
    for (const frame of framesOf(messages, versionOf(socket.protocol, wireVersions))) {
      if (socket.bufferedAmount <= this.#options.limits.unsentBytesMax) socket.send(frame, ignoreError);
    }
  }

  tick(): void {
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return;
    const { silentTicksMax, slowBytesPerTick } = this.#options.limits;
    this.#bufferedBytesMax = Math.max(this.#bufferedBytesMax, socket.bufferedAmount);
    if (++this.#silentTicks >= silentTicksMax + this.#bufferedBytesMax / slowBytesPerTick) socket.terminate();
    else if (++this.#ticks % 2 === 0) socket.ping(undefined, undefined, ignoreError);
  }

  close(): void {
    this.#pauses.end();
    this.#socket.terminate();
  }

  #connect(): WebSocket {
    const { incarnation, members, localAddress, limits } = this.#options;
    const { connectMsMax } = limits;
    this.#certificate = undefined;
    const { clusterAddress } = this.#member;
    const socket = openWebSocket(
      {
        ...{ address: clusterAddress, path: raftPath, protocols: raftProtocols(wireVersions) },
        headers: { [incarnationHeader]: writeIncarnation(incarnation) },
        ...{ frameBytesMax, handshakeMsMax: connectMsMax },
      },
      (done) =>
        connectToPeer(this.#member, { identity: members.requireIdentity(), localAddress, connectMsMax }, (error, connection) => {
          this.#certificate = connection?.certificate;
          if (connection !== undefined) this.#ending = new ConnectionEnding(connection.socket);
          this.#isRefused = false;
          done(error ?? null, connection?.socket);
          if (error !== undefined && isConnectionRefused(error)) this.#onConnectionRefused();
        }),
    );
    let reason = `the connection to ${clusterAddress} ended`;
    socket.on('open', () => {
      this.#options.observer.reachable(this.#member.id, clusterAddress);
      this.#reportedStatus = 0;
      this.#early = 0;
      this.#silentTicks = 0;
      this.#bufferedBytesMax = 0;
    });
    socket.on('pong', () => {
      this.#silentTicks = 0;
      this.#bufferedBytesMax = 0;
      this.#attempts = 0; // the connection has lasted long enough to count as stable
    });
    // A peer sends nothing but pongs on this connection.
    socket.on('message', () => socket.terminate());
    let answered = false;
    socket.on('unexpected-response', (_request, { statusCode = 0 }) => {
      answered = true;
      reason = `${clusterAddress} answered with status ${statusCode}`;
      socket.terminate();
      if (!this.#pauses.isEnded) this.#onRefusal(statusCode);
    });
    socket.on('error', (error) => {
      if (!answered) reason = reasonOf(error);
    }); // `close` follows
    socket.on('close', () => {
      if (!answered) this.#early = 0;
      this.#onClose(reason);
    });
    return socket;
  }

  #onConnectionRefused(): void {
    if (this.#pauses.isEnded || !this.#ending.byPeer) return;
    this.#isRefused = true;
    this.#options.transport.refused(this.#member.id);
  }

  #onRefusal(status: number): void {
    const { limits, observer } = this.#options;
    const { id } = this.#member;
    this.#early = status === 503 ? this.#early + 1 : 0;
    if (status === 410) observer.removed();
    if (status === 409) observer.overtaken(id, 'later');
    if (this.#early >= limits.earlyMax) observer.overtaken(id, 'other');
    if (status === this.#reportedStatus) return;
    this.#reportedStatus = status;
    if (status === 426) observer.foreignVersion(id);
    if (status === 503) observer.earlierConnected(id);
  }

  #onClose(reason: string): void {
    if (this.#pauses.isEnded) return;
    const waitMs = backoffMs(this.#attempts++, this.#options.limits, Math.random());
    void this.#pauses.pause(waitMs).then(() => {
      if (!this.#pauses.isEnded) this.#socket = this.#connect();
    });
    this.#options.transport.unreachable(this.#member.id);
    this.#options.observer.unreachable(this.#member.id, reason);
  }
}

/** Returns the delay after this many failed attempts: doubled each time, half of it random, so that peers do not reconnect all at once. */
export function backoffMs(
  attempts: number,
  { reconnectMsMin, reconnectMsMax }: Pick<TransportLimits, 'reconnectMsMin' | 'reconnectMsMax'>,
  chance: number,
): number {
  const ms = Math.min(reconnectMsMax, reconnectMsMin * 2 ** attempts);
  return (ms * (1 + chance)) / 2;
}

const ignoreError = (): void => undefined;

/**
 * Encodes all messages as one frame, or one frame each when together they exceed the frame limit. Leaves out types that the version does
 * not have: a peer may connect again with an older version after it was asked.
 */
function framesOf(all: readonly Message[], version: number): readonly Uint8Array[] {
  const messages = all.filter(({ type }) => isInVersion(type, version));
  if (messages.length === 0) return [];
  try {
    return [encodeBatch(messages, version)];
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return messages.map((message) => encodeMessage(message, version));
  }
}
