import {
  type Clock,
  type Done,
  invariant,
  type LogIndex,
  type NodeId,
  type SnapshotMeta,
  type SnapshotSource,
  type SnapshotTransfer,
} from '@transitd/raft-core';
import { type Disk, localDisk } from '../directory/disk.ts';
import { removeOtherGenerations } from '../directory/node-directory.ts';
import { failpoint } from '../failpoint.ts';
import type { SegmentLog } from '../log/segment-log.ts';
import type { KeyValueMachine } from '../state/key-value-machine.ts';
import { unreferencedTimer } from '../timer.ts';
import { type Fetched, fetchSnapshot, type SnapshotLink } from './snapshot-fetch.ts';
import { SnapshotSender } from './snapshot-sender.ts';

export interface NodeSnapshotsOptions {
  readonly log: SegmentLog;
  readonly machine: KeyValueMachine;
  readonly link: SnapshotLink;
  /** `DiskReserve.diskLow`: while it returns true, no snapshot is fetched. */
  readonly diskLow: () => boolean;
  /** Maximum number of concurrent streams to peers; default 2. */
  readonly streamsMax?: number;
  /** How long a stream may make no progress, on either side; default 30 s. */
  readonly stallMs?: number;
  /** Receives the error of a failed fetch, for logging: the driver learns only that it failed. */
  readonly onFetchFailed?: (error: Error) => void;
  /** Schedules the check for stalled streams; by default a timer that does not keep the process alive. */
  readonly every?: Clock['every'];
  readonly disk?: Disk;
}

/** Sends this node's state on disk to peers on request, and fetches a leader's state into a generation next to the current one. */
export class NodeSnapshots implements SnapshotTransfer {
  readonly #options: NodeSnapshotsOptions & { readonly disk: Disk; readonly stallMs: number; readonly every: Clock['every'] };
  readonly #sender: SnapshotSender;
  #fetched: Fetched | undefined;
  /** The work on generations other than the current one; one task at a time. */
  #work: Promise<void> = Promise.resolve();
  #cancelFetch: (() => void) | undefined;

  constructor(options: NodeSnapshotsOptions) {
    const { machine, disk = localDisk, streamsMax = 2, stallMs = 30_000, every = unreferencedTimer } = options;
    this.#options = { ...options, disk, stallMs, every };
    this.#sender = new SnapshotSender({ machine, streamsMax, stallMs, every });
  }

  serve(source: SnapshotSource): void {
    this.#sender.serve(source);
  }

  /**
   * Returns the bytes of a snapshot for a peer, which requested it by `SnapshotLink.open`. Ending the iteration early, or stalling it,
   * fails the transfer; a second request from the same peer ends the first.
   * @throws StoreError `busy`, `not_leader`, `stopped`: a refusal, before anything is sent
   */
  stream(peer: NodeId, index: LogIndex): AsyncIterableIterator<Uint8Array> {
    return this.#sender.stream(peer, index);
  }

  /**
   * Returns a snapshot of the state that is durable now, for an operator. It ends with an error when its reader stalls for `stallMs`, or
   * when a snapshot is installed on this node meanwhile.
   * @throws StoreError `stopped`
   */
  backup(): AsyncIterableIterator<Uint8Array> {
    return this.#sender.backup();
  }

  fetch(
    { from, meta }: { readonly from: NodeId; readonly meta: SnapshotMeta },
    done: (received: SnapshotMeta | undefined) => void,
  ): () => void {
    this.discard();
    const abort = new AbortController();
    const { signal } = abort;
    const cancel = (): void => abort.abort(new Error('the snapshot is no longer needed'));
    this.#cancelFetch = cancel;
    this.#enqueue(async () => {
      const fetched = await fetchSnapshot(this.#options, { from, index: meta.index, signal }).catch((error: Error) => {
        if (!signal.aborted) this.#options.onFetchFailed?.(error);
        return undefined;
      });
      if (fetched !== undefined && signal.aborted) await this.#remove(fetched);
      if (signal.aborted) return;
      this.#fetched = fetched;
      queueMicrotask(() => (signal.aborted ? this.discard() : done(fetched?.meta)));
    });
    return cancel;
  }

  install(meta: SnapshotMeta, done: Done): void {
    const fetched = this.#fetched;
    invariant(fetched?.meta.index === meta.index, 'a snapshot is installed only after it was fetched', {
      index: meta.index,
      have: fetched?.meta.index,
    });
    this.#fetched = undefined;
    this.#install(fetched).then(
      () => queueMicrotask(done),
      (error: Error) => queueMicrotask(() => done(error)),
    );
  }

  discard(): void {
    const fetched = this.#fetched;
    this.#fetched = undefined;
    if (fetched !== undefined) this.#enqueue(() => this.#remove(fetched));
  }

  /**
   * Ends all streams and resolves when all work has finished. Call it after the driver has stopped and before the state machine is
   * closed.
   */
  async close(): Promise<void> {
    this.#sender.close();
    this.#cancelFetch?.();
    this.discard();
    await this.#work;
  }

  async #install({ meta, generation, store }: Fetched): Promise<void> {
    const { log, machine } = this.#options;
    await log.install(meta, generation);
    const oldStateClosed = machine.adopt(store);
    this.#enqueue(async () => {
      await oldStateClosed;
      failpoint('snapshot.before_remove');
      await this.#clear();
    });
  }

  async #remove({ store }: Fetched): Promise<void> {
    await store.close();
    await this.#clear();
  }

  #clear(): Promise<void> {
    const { log, disk } = this.#options;
    const { directory, generation } = log.place;
    return removeOtherGenerations(disk, directory, generation);
  }

  /** Runs the task after all earlier ones. Files that it fails to remove are removed by the next fetch or at the next start. */
  #enqueue(task: () => Promise<void>): void {
    this.#work = this.#work.then(task).catch(() => undefined);
  }
}
