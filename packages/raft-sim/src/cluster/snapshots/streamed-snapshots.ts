import type { Done, LogIndex, NodeId, SnapshotMeta, SnapshotSource, SnapshotTransfer } from '@transitd/raft-core';
import type { SnapshotStreams } from '../storage/storage.ts';

export interface StreamedSnapshotsOptions {
  readonly streams: SnapshotStreams;
  /** Runs a callback of a stream in the node's process. */
  enter(task: () => void): void;
  /** Called before and after a snapshot is installed. */
  installs(meta: SnapshotMeta): void;
  installed(): void;
}

/** A storage's own snapshots, observed: their callbacks run in their node's process. */
export class StreamedSnapshots implements SnapshotTransfer {
  readonly #options: StreamedSnapshotsOptions;
  isInstalling = false;
  isFetching = false;

  constructor(options: StreamedSnapshotsOptions) {
    this.#options = options;
  }

  serve(source: SnapshotSource): void {
    const { streams, enter } = this.#options;
    streams.serve({ describe: (index) => source.describe(index), failed: (peer) => enter(() => source.failed(peer)) });
  }

  stream(peer: NodeId, index: LogIndex): AsyncIterable<Uint8Array> {
    return this.#options.streams.stream(peer, index);
  }

  fetch(
    offer: { readonly from: NodeId; readonly meta: SnapshotMeta },
    done: (received: SnapshotMeta | undefined) => void,
  ): () => void {
    const { streams, enter } = this.#options;
    let wanted = true;
    this.isFetching = true;
    const giveUp = streams.fetch(offer, (received) =>
      enter(() => {
        if (!wanted) return;
        this.isFetching = false;
        done(received);
      }),
    );
    return () => {
      if (wanted) this.isFetching = false;
      wanted = false;
      giveUp();
    };
  }

  install(meta: SnapshotMeta, done: Done): void {
    const { streams, enter, installs, installed } = this.#options;
    this.isInstalling = true;
    installs(meta);
    streams.install(meta, (error) =>
      enter(() => {
        this.isInstalling = false;
        if (error === undefined) installed();
        done(error);
      }),
    );
  }

  discard(): void {
    this.#options.streams.discard();
  }
}
