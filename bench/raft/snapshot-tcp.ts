import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { LogIndex, NodeId } from '@transitd/raft-core';
import type { SnapshotLink } from '@transitd/storage-fsm';
import type { Address } from './orders.ts';

/** `node u48 | index u48`: the node that asks, and the snapshot that it asks for. */
const requestBytes = 12;

type Stream = (peer: NodeId, index: LogIndex) => AsyncIterable<Uint8Array>;

/** Snapshots over plain TCP, for the bench only. Each snapshot uses its own connection: a request one way, and the stream the other way. */
export class SnapshotTcp implements SnapshotLink {
  readonly #self: NodeId;
  readonly #server: Server;
  readonly #ports = new Map<NodeId, number>();
  /** Bytes of streams received here. */
  received = 0;
  #stream: Stream | undefined;

  constructor(self: NodeId) {
    this.#self = self;
    this.#server = createServer({ noDelay: true }, (socket) => {
      answer(socket, this.#stream).catch(() => socket.destroy());
    });
  }

  serve(stream: Stream): void {
    this.#stream = stream;
  }

  /** Starts to listen. Resolves with the port. */
  async listen(): Promise<number> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('a server on TCP has a port');
    return address.port;
  }

  locate({ id, snapshotPort }: Address): void {
    this.#ports.set(id, snapshotPort);
  }

  async open(from: NodeId, index: LogIndex, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const socket = connect({ port: this.#ports.get(from) ?? 0, host: '127.0.0.1', noDelay: true });
    signal.addEventListener('abort', () => socket.destroy(), { once: true });
    await once(socket, 'connect', { signal });
    const request = Buffer.alloc(requestBytes);
    request.writeUIntBE(this.#self, 0, 6);
    request.writeUIntBE(index, 6, 6);
    socket.write(request);
    return this.#counted(socket);
  }

  async *#counted(socket: Socket): AsyncGenerator<Uint8Array> {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      this.received += chunk.length;
      yield chunk;
    }
  }
}

async function answer(socket: Socket, stream: Stream | undefined): Promise<void> {
  const [request]: Buffer[] = await once(socket, 'data');
  if (request?.length !== requestBytes || stream === undefined) throw new Error('invalid request for a snapshot');
  const chunks = Readable.from(stream(request.readUIntBE(0, 6), request.readUIntBE(6, 6)), { objectMode: false });
  await pipeline(chunks, socket);
}
