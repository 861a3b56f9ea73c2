import type { Done, LogIndex, NodeId, SnapshotMeta } from '@transitd/raft-core';
import type { SnapshotStreams, SnapshotWire } from '@transitd/raft-sim';
import { NodeSnapshots, type NodeSnapshotsOptions } from '../../src/snapshot/node-snapshots.ts';
import type { AcknowledgedLog } from './acknowledged-log.ts';
import type { Tombstones } from './tombstones.ts';

export interface StreamedStateOptions extends Pick<NodeSnapshotsOptions, 'log' | 'machine' | 'disk' | 'every'> {
  readonly wire: SnapshotWire;
  readonly durable: AcknowledgedLog;
  readonly tombstones: Tombstones;
}

/**
 * The real snapshots of a node. Its tombstones, which a server stores as records, are sent as a separate chunk ahead of the stream.
 */
export class StreamedState implements SnapshotStreams {
  readonly #options: StreamedStateOptions;
  readonly #snapshots: NodeSnapshots;
  #arrived: Uint8Array | undefined;

  constructor(options: StreamedStateOptions) {
    const { wire } = options;
    this.#options = options;
    this.#snapshots = new NodeSnapshots({
      ...options,
      diskLow: () => false,
      link: { open: async (from, index) => this.#received(wire.open(from, index)) },
    });
  }

  serve(...args: Parameters<SnapshotStreams['serve']>): void {
    this.#snapshots.serve(...args);
  }

  async *stream(peer: NodeId, index: LogIndex): AsyncGenerator<Uint8Array> {
    const stream = this.#snapshots.stream(peer, index);
    yield this.#options.tombstones.encode();
    yield* stream;
  }

  fetch(...args: Parameters<SnapshotStreams['fetch']>): () => void {
    return this.#snapshots.fetch(...args);
  }

  install(meta: SnapshotMeta, done: Done): void {
    const { durable, tombstones } = this.#options;
    durable.installing(meta);
    this.#snapshots.install(meta, (error) => {
      if (error === undefined) {
        durable.installed(meta);
        if (this.#arrived !== undefined) tombstones.received(this.#arrived);
      }
      done(error);
    });
  }

  discard(): void {
    this.#snapshots.discard();
  }

  async *#received(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let isFirst = true;
    for await (const chunk of stream) {
      if (isFirst) this.#arrived = chunk;
      else yield chunk;
      isFirst = false;
    }
  }
}
