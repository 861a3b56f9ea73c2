import type { Clock, LogIndex, NodeId, SnapshotSource } from '@transitd/raft-core';
import type { KeyValueMachine } from '../state/key-value-machine.ts';
import type { StateSnapshot } from '../state/state-store.ts';
import { StoreError } from '../store/store.ts';
import { IdleWatch } from './idle-watch.ts';
import { writeSnapshot } from './snapshot-stream.ts';

export interface SnapshotSenderOptions {
  readonly machine: Pick<KeyValueMachine, 'snapshot'>;
  /** Maximum number of concurrent streams to peers. */
  readonly streamsMax: number;
  /** A stream fails when its reader takes nothing for this long. */
  readonly stallMs: number;
  readonly every: Clock['every'];
}

/** The sending side of snapshots: streams the state on disk to peers and operators, at each reader's pace. */
export class SnapshotSender {
  readonly #options: SnapshotSenderOptions;
  readonly #streams = new Map<NodeId, SnapshotStream>();
  readonly #backups = new Set<SnapshotStream>();
  #source: SnapshotSource | undefined;
  #closed = false;

  constructor(options: SnapshotSenderOptions) {
    this.#options = options;
  }

  serve(source: SnapshotSource): void {
    this.#source = source;
  }

  /**
   * Returns a stream of the state that is durable now, at `index` or above, for `peer`. Ends an earlier stream to the same peer.
   * @throws StoreError `stopped`, `busy` or `not_leader` (the state here is older than `index`); the transfer has failed then
   */
  stream(peer: NodeId, index: LogIndex): AsyncIterableIterator<Uint8Array> {
    const source = this.#source;
    if (this.#closed || source === undefined) throw new StoreError('stopped', 'this node sends no snapshots');
    this.#streams.get(peer)?.end('superseded');
    try {
      if (this.#streams.size >= this.#options.streamsMax)
        throw new StoreError('busy', 'the maximum number of snapshots is already being sent');
      return this.#open(peer, index, source);
    } catch (error) {
      source.failed(peer);
      throw error;
    }
  }

  /**
   * Returns a stream of the state that is durable now, for an operator.
   * @throws StoreError `stopped`
   */
  backup(): AsyncIterableIterator<Uint8Array> {
    const source = this.#source;
    if (this.#closed || source === undefined) throw new StoreError('stopped', 'this node sends no snapshots');
    const stream = this.#begin(source, 0, () => void this.#backups.delete(stream));
    this.#backups.add(stream);
    return stream;
  }

  /** Ends every stream; their readers get an error. */
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
      // Done in the same event-loop turn: later the log may be compacted beyond the snapshot, and the snapshot's term would be lost.
      const chunks = writeSnapshot(snapshot, source.describe(appliedIndex));
      return new SnapshotStream(chunks, snapshot, this.#options, ended);
    } catch (error) {
      void snapshot.close();
      throw error;
    }
  }
}

type Outcome = 'sent' | 'failed' | 'superseded';

/** One stream. It ends once: after its last chunk, by an error, when its reader leaves or stalls, or when another stream replaces it. */
class SnapshotStream implements AsyncIterableIterator<Uint8Array> {
  readonly #chunks: AsyncGenerator<Uint8Array>;
  readonly #snapshot: StateSnapshot;
  readonly #ended: (outcome: Outcome) => void;
  readonly #idle: IdleWatch;
  #outcome: Outcome | undefined;

  constructor(
    chunks: AsyncGenerator<Uint8Array>,
    snapshot: StateSnapshot,
    { stallMs, every }: Pick<SnapshotSenderOptions, 'stallMs' | 'every'>,
    ended: (outcome: Outcome) => void,
  ) {
    this.#chunks = chunks;
    this.#snapshot = snapshot;
    this.#ended = ended;
    this.#idle = new IdleWatch({ limitMs: stallMs, every, expired: () => this.end('failed') });
    this.#idle.waitBegan();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#outcome === 'sent') return { done: true, value: undefined };
    this.#idle.waitEnded();
    try {
      const chunk = await this.#chunks.next();
      if (this.#outcome !== undefined) throw new StoreError('stopped', 'the snapshot transfer was ended');
      if (chunk.done === true) this.end('sent');
      else this.#idle.waitBegan();
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
    closed.catch(() => undefined); // the store may already be closed
    this.#ended(outcome);
  }
}
