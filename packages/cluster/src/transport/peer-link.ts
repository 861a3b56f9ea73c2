import type { Duplex } from 'node:stream';
import { reasonOf } from '@transitd/process';
import { CodecError, encodeBatch, encodeMessage, frameBytesMax, type Message, wireVersions } from '@transitd/raft-core';
import { WebSocket } from 'ws';
import type { NodeIdentity } from '../membership/identity.ts';
import { certificatesOf, type Member } from '../membership/membership.ts';
import { raftPath } from './cluster-listener.ts';
import { incarnationHeader, type Run, writeIncarnation } from './incarnations.ts';
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
  /** A peer that says so many times in a row that an earlier run is still connected has another process in mind: a lost connection ends sooner. */
  readonly earlyMax: number;
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
  earlyMax: 40,
};

/** What a peer answers is told at each refusal; `foreignVersion` and `early` once until it takes this node in. */
export interface PeerLinkOptions {
  readonly run: Run;
  readonly identity: () => NodeIdentity;
  readonly localAddress: string | undefined;
  readonly limits: TransportLimits;
  /** An attempt failed, or a connection ended. @param reason - with the address that was dialed */
  readonly unreachable: (reason: string) => void;
  readonly reachable: (address: string) => void;
  readonly removed: () => void;
  readonly foreignVersion: () => void;
  readonly overtaken: (by: 'later' | 'other') => void;
  readonly early: () => void;
}

/** The way to one peer; connects again and again. */
export class PeerLink {
  readonly #options: PeerLinkOptions;
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
  /** What a refusal was told of, until the peer takes this node in. */
  #toldOf: number | undefined;
  /** Refusals in a row because of an earlier run. */
  #early = 0;
  #closed = false;

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
    const { run, identity, localAddress, limits } = this.#options;
    const { connectMsMax } = limits;
    this.#certificate = undefined;
    const socket = new WebSocket(`wss://${this.#member.clusterAddress}${raftPath}`, [...raftProtocols(wireVersions)], {
      headers: { [incarnationHeader]: writeIncarnation(run) },
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
    const { clusterAddress } = this.#member;
    let reason = `the connection to ${clusterAddress} ended`;
    socket.on('open', () => {
      this.#options.reachable(clusterAddress);
      this.#toldOf = undefined;
      this.#early = 0;
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
    let answered = false;
    socket.on('unexpected-response', (_request, { statusCode }) => {
      answered = true;
      reason = `${clusterAddress} answered with status ${statusCode}`;
      socket.terminate();
      if (!this.#closed) this.#onRefusal(statusCode);
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

  #onRefusal(status: number | undefined): void {
    const { limits, removed, overtaken, foreignVersion, early } = this.#options;
    this.#early = status === 503 ? this.#early + 1 : 0;
    if (status === 410) removed();
    if (status === 409) overtaken('later');
    if (this.#early >= limits.earlyMax) overtaken('other');
    if (status === this.#toldOf) return;
    this.#toldOf = status;
    if (status === 426) foreignVersion();
    if (status === 503) early();
  }

  #onClose(reason: string): void {
    if (this.#closed) return;
    const waitMs = backoffMs(this.#attempts++, this.#options.limits, Math.random());
    this.#retry = setTimeout(() => {
      this.#socket = this.#connect();
    }, waitMs);
    this.#options.unreachable(reason);
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
