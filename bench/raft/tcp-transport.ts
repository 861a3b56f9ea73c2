import { connect, createServer, type Server, type Socket } from 'node:net';
import {
  decodeMessage,
  encodeMessage,
  type Message,
  type NodeId,
  type Transport,
  type TransportReceiver,
} from '@transitd/raft-core';
import type { Address } from './orders.ts';

const lengthBytes = 4;
/** A peer with more unsent bytes than this loses messages, as on any slow network. */
const unsentBytesMax = 8 * 2 ** 20;
const reconnectMs = 50;

/** Messages over plain TCP, for the bench only: no TLS, no authentication. One connection per ordered pair of members. */
export class TcpTransport implements Transport {
  readonly #links = new Map<NodeId, Link>();
  readonly #server: Server;
  #receiver: TransportReceiver | undefined;

  constructor() {
    this.#server = createServer({ noDelay: true }, (socket) => {
      const frames = new FrameReader((frame) => this.#receiver?.message(decodeMessage(frame)));
      socket.on('data', (chunk) => frames.add(chunk));
      socket.on('error', () => socket.destroy());
    });
  }

  /** Starts to listen. Resolves with the port. */
  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject).listen(0, '127.0.0.1', () => {
        const address = this.#server.address();
        if (address !== null && typeof address === 'object') resolve(address.port);
      });
    });
  }

  /** Sets the address of another member. */
  locate({ id, port }: Address): void {
    this.#links.get(id)?.close();
    this.#links.set(id, new Link(port, () => this.#receiver?.unreachable(id)));
  }

  receive(receiver: TransportReceiver): void {
    this.#receiver = receiver;
  }

  send(messages: readonly Message[]): void {
    for (const [id, link] of this.#links) link.send(messages.filter(({ to }) => to === id));
  }
}

/** The connection to one peer; reconnects forever. */
class Link {
  readonly #port: number;
  readonly #unreachable: () => void;
  #socket: Socket;
  #closed = false;

  constructor(port: number, unreachable: () => void) {
    this.#port = port;
    this.#unreachable = unreachable;
    this.#socket = this.#connect();
  }

  send(messages: readonly Message[]): void {
    const socket = this.#socket;
    if (messages.length === 0 || socket.readyState !== 'open' || socket.writableLength > unsentBytesMax) return;
    socket.cork();
    for (const message of messages) {
      const frame = encodeMessage(message);
      const length = Buffer.allocUnsafe(lengthBytes);
      length.writeUInt32BE(frame.length);
      socket.write(length);
      socket.write(frame);
    }
    socket.uncork();
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #connect(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    socket.on('error', () => undefined); // `close` follows
    socket.on('close', () => {
      if (this.#closed) return;
      this.#unreachable();
      setTimeout(() => {
        if (!this.#closed) this.#socket = this.#connect();
      }, reconnectMs);
    });
    return socket;
  }
}

/** Splits a stream into frames: `length u32 | frame`. Copies each chunk at most once, and only if a frame spans several. */
class FrameReader {
  readonly #take: (frame: Uint8Array) => void;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Bytes needed for the next frame; until its length is known, for its length field. */
  #wanted = lengthBytes;

  constructor(take: (frame: Uint8Array) => void) {
    this.#take = take;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= this.#wanted) this.#cut();
  }

  #cut(): void {
    const [first] = this.#chunks;
    const all = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    let at = 0;
    this.#wanted = lengthBytes;
    while (all.length - at >= lengthBytes) {
      const end = at + lengthBytes + all.readUInt32BE(at);
      if (end > all.length) {
        this.#wanted = end - at;
        break;
      }
      this.#take(all.subarray(at + lengthBytes, end));
      at = end;
    }
    this.#chunks = at === all.length ? [] : [all.subarray(at)];
    this.#bytes = all.length - at;
  }
}
