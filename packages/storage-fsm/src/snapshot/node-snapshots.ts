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
import type { KeyValueMachine } from '../state/state-machine.ts';
import { unreferencedTimer } from '../timer.ts';
import { type Fetched, fetchSnapshot, type SnapshotLink } from './snapshot-fetch.ts';
import { SnapshotServing } from './snapshot-serving.ts';

export interface NodeSnapshotsOptions {
  readonly log: SegmentLog;
  readonly machine: KeyValueMachine;
  readonly link: SnapshotLink;
  /** Whether the data disk is below its reserve, as `DiskReserve` says: nothing is fetched then. */
  readonly diskLow: () => boolean;
  /** Streams to peers at once; 2 unless given. */
  readonly streamsMax?: number;
  /** How long a stream may stand still on either side; 30 s unless given. */
  readonly stallMs?: number;
  /** Why a fetch came to nothing, for the log: the port tells its driver only that it did. */
  readonly onFetchFailed?: (error: Error) => void;
  /** Runs the watch over streams; by default a timer that does not keep the process alive. */
  readonly every?: Clock['every'];
  readonly disk?: Disk;
}

/** Snapshots between real nodes: the state on disk here to peers that ask, and a leader's state into a generation beside the one in force. */
export class NodeSnapshots implements SnapshotTransfer {
  readonly #options: NodeSnapshotsOptions & { readonly disk: Disk; readonly stallMs: number; readonly every: Clock['every'] };
  readonly #serving: SnapshotServing;
  #fetched: Fetched | undefined;
  /** What still runs on generations that are not in force; one thing at a time. */
  #work: Promise<void> = Promise.resolve();
  #giveUp: (() => void) | undefined;

  constructor(options: NodeSnapshotsOptions) {
    const { machine, disk = localDisk, streamsMax = 2, stallMs = 30_000, every = unreferencedTimer } = options;
    this.#options = { ...options, disk, stallMs, every };
    this.#serving = new SnapshotServing({ machine, streamsMax, stallMs, every });
  }

  serve(source: SnapshotSource): void {
    this.#serving.serve(source);
  }

  /**
   * For a peer's request, which its `SnapshotLink.open` has sent: the snapshot as bytes, to be passed on as they are taken. Ending
   * the iteration early, or standing still, fails the transfer; a second request of the same peer ends the first.
   * @throws StoreError `busy`, `not_leader`, `stopped`: a refusal, before anything is sent
   */
  stream(peer: NodeId, index: LogIndex): AsyncIterableIterator<Uint8Array> {
    return this.#serving.stream(peer, index);
  }

  /**
   * The snapshot as an operator keeps it: of what is durable here now. It ends with an error when its reader stands still for as long
   * as a peer may, or a snapshot is installed here meanwhile.
   * @throws StoreError `stopped`
   */
  backup(): AsyncIterableIterator<Uint8Array> {
    return this.#serving.backup();
  }

  fetch(
    { from, meta }: { readonly from: NodeId; readonly meta: SnapshotMeta },
    done: (received: SnapshotMeta | undefined) => void,
  ): () => void {
    this.discard();
    const abort = new AbortController();
    let wanted = true;
    const giveUp = (): void => {
      wanted = false;
      abort.abort(new Error('the snapshot is not wanted any more'));
    };
    this.#giveUp = giveUp;
    this.#inTurn(async () => {
      const fetched = await fetchSnapshot(this.#options, { from, index: meta.index, signal: abort.signal }).catch(
        (error: Error) => {
          if (wanted) this.#options.onFetchFailed?.(error);
          return undefined;
        },
      );
      if (fetched !== undefined && !wanted) await this.#remove(fetched);
      if (!wanted) return;
      this.#fetched = fetched;
      queueMicrotask(() => (wanted ? done(fetched?.meta) : this.discard()));
    });
    return giveUp;
  }

  install(meta: SnapshotMeta, done: Done): void {
    const fetched = this.#fetched;
    invariant(fetched?.meta.index === meta.index, 'what is installed was fetched', {
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
    if (fetched !== undefined) this.#inTurn(() => this.#remove(fetched));
  }

  /** Ends all streams and resolves when nothing runs any more: to be called after the driver has stopped, before the state machine is closed. */
  async close(): Promise<void> {
    this.#serving.close();
    this.#giveUp?.();
    this.discard();
    await this.#work;
  }

  async #install({ meta, generation, store }: Fetched): Promise<void> {
    const { log, machine } = this.#options;
    await log.install(meta, generation);
    const retired = machine.adopt(store);
    this.#inTurn(async () => {
      await retired;
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

  /** What cannot be removed now is removed at the next start, or by the next fetch, which needs its place. */
  #inTurn(task: () => Promise<void>): void {
    this.#work = this.#work.then(task).catch(() => undefined);
  }
}
