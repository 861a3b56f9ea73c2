import type { Clock, LogIndex, NodeId, SnapshotSource } from '@transitd/raft-core';
import type { KeyValueMachine } from '../state/state-machine.ts';
import type { StateSnapshot } from '../state/state-store.ts';
import { StoreError } from '../store/store.ts';
import { IdleWatch } from './idle-watch.ts';
import { writeSnapshot } from './snapshot-stream.ts';

export interface SnapshotServingOptions {
  readonly machine: Pick<KeyValueMachine, 'snapshot'>;
  /** Streams to different peers at once. */
  readonly streamsMax: number;
  /** A peer that takes nothing for so long has failed. */
  readonly stallMs: number;
  readonly every: Clock['every'];
}

/** The leader's side of snapshots: what is on disk here, to whoever asks, at the pace of whoever reads. */
export class SnapshotServing {
  readonly #options: SnapshotServingOptions;
  readonly #streams = new Map<NodeId, SnapshotStream>();
  readonly #backups = new Set<SnapshotStream>();
  #source: SnapshotSource | undefined;
  #closed = false;

  constructor(options: SnapshotServingOptions) {
    this.#options = options;
  }

  serve(source: SnapshotSource): void {
    this.#source = source;
  }

  /**
   * The stream for `peer`, of the state that is durable now, at `index` or above. A stream that this peer had before ends.
   * @throws StoreError `stopped`, `busy` or `not_leader` (the state here is older than that): the transfer has failed then
   */
  stream(peer: NodeId, index: LogIndex): AsyncIterableIterator<Uint8Array> {
    const source = this.#source;
    if (this.#closed || source === undefined) throw new StoreError('stopped', 'this node sends no snapshots');
    this.#streams.get(peer)?.end('superseded');
    try {
      if (this.#streams.size >= this.#options.streamsMax) throw new StoreError('busy', 'enough snapshots are being sent');
      return this.#open(peer, index, source);
    } catch (error) {
      source.failed(peer);
      throw error;
    }
  }

  /**
   * The same for an operator: of the state that is durable now.
   * @throws StoreError `stopped`
   */
  backup(): AsyncIterableIterator<Uint8Array> {
    const source = this.#source;
    if (this.#closed || source === undefined) throw new StoreError('stopped', 'this node sends no snapshots');
    const stream = this.#begin(source, 0, () => void this.#backups.delete(stream));
    this.#backups.add(stream);
    return stream;
  }

  /** Ends every stream; their readers meet an error. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams.values(), ...this.#backups]) stream.end('failed');
  }

  #open(peer: NodeId, index: LogIndex, source: SnapshotSource): SnapshotStream {
    const stream = this.#begin(source, index, (outcome) => {
      if (this.#streams.get(peer) === stream) this.#streams.delete(peer);
      if (outcome === 'failed') source.failed(peer);
    });
    this.#streams.set(peer, stream);
    return stream;
  }

  #begin(source: SnapshotSource, index: LogIndex, ended: (outcome: Outcome) => void): SnapshotStream {
    const snapshot = this.#options.machine.snapshot();
    try {
      const { appliedIndex } = snapshot.meta;
      if (appliedIndex < index) throw new StoreError('not_leader', `the state here ends at ${appliedIndex}, before ${index}`);
      // In this very turn: a later one may find the log compacted beyond the snapshot, and its term forgotten.
      const chunks = writeSnapshot(snapshot, source.describe(appliedIndex));
      return new SnapshotStream(chunks, snapshot, this.#options, ended);
    } catch (error) {
      void snapshot.close();
      throw error;
    }
  }
}

type Outcome = 'sent' | 'failed' | 'superseded';

/** One stream: ends once, by its last chunk, an error, a reader that goes away or stands still, or another stream. */
class SnapshotStream implements AsyncIterableIterator<Uint8Array> {
  readonly #chunks: AsyncGenerator<Uint8Array>;
  readonly #snapshot: StateSnapshot;
  readonly #ended: (outcome: Outcome) => void;
  readonly #idle: IdleWatch;
  #outcome: Outcome | undefined;

  constructor(
    chunks: AsyncGenerator<Uint8Array>,
    snapshot: StateSnapshot,
    { stallMs, every }: Pick<SnapshotServingOptions, 'stallMs' | 'every'>,
    ended: (outcome: Outcome) => void,
  ) {
    this.#chunks = chunks;
    this.#snapshot = snapshot;
    this.#ended = ended;
    this.#idle = new IdleWatch({ limitMs: stallMs, every, expired: () => this.end('failed') });
    this.#idle.waits();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#outcome === 'sent') return { done: true, value: undefined };
    this.#idle.came();
    try {
      const chunk = await this.#chunks.next();
      if (this.#outcome !== undefined) throw new StoreError('stopped', 'the snapshot is not sent any further');
      if (chunk.done === true) this.end('sent');
      else this.#idle.waits();
      return chunk;
    } catch (error) {
      this.end('failed');
      throw error;
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.end('failed');
    return { done: true, value: undefined };
  }

  end(outcome: Outcome): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.#idle.stop();
    const closed = Promise.allSettled([this.#chunks.return(undefined)]).then(() => this.#snapshot.close());
    closed.catch(() => undefined); // the store itself has been closed
    this.#ended(outcome);
  }
}
