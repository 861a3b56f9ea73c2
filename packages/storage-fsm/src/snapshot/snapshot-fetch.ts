import { type Clock, CodecError, type LogIndex, type NodeId, type SnapshotMeta } from '@transitd/raft-core';
import type { Disk } from '../directory/disk.ts';
import { nodePaths } from '../directory/node-directory.ts';
import { StorageDamaged, StorageFailed } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { SegmentLog } from '../log/segment-log.ts';
import type { StateLoader } from '../state/state-loader.ts';
import type { KeyValueMachine } from '../state/state-machine.ts';
import type { StateMeta } from '../state/state-record.ts';
import type { StateStore } from '../state/state-store.ts';
import { IdleWatch } from './idle-watch.ts';
import { readSnapshot } from './snapshot-stream.ts';

/** How this node asks another one for its state: the server's part, since it knows addresses and connections. */
export interface SnapshotLink {
  /**
   * Asks `from` for a snapshot at `index` or above: what {@link NodeSnapshots.stream} gives there, cut anywhere. Rejects when the
   * peer cannot be reached or refuses; the stream throws when it breaks. Both end when `signal` says so.
   */
  open(from: NodeId, index: LogIndex, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

/** A generation beside the one in force, whole and durable. */
export interface Fetched {
  readonly meta: SnapshotMeta;
  readonly generation: number;
  readonly store: StateStore;
}

export interface FetchParts {
  readonly log: Pick<SegmentLog, 'place' | 'createGenerationLog'>;
  readonly machine: Pick<KeyValueMachine, 'loadBeside' | 'openBeside'>;
  readonly link: SnapshotLink;
  readonly disk: Disk;
  /** True while the data disk is below its reserve: a second state must not fill it, or the log fails and with it the node. */
  readonly diskLow: () => boolean;
  /** Nothing coming for so long ends the stream. */
  readonly stallMs: number;
  readonly every: Clock['every'];
}

/**
 * Streams a snapshot into a generation of its own: state and an empty log. What a failure leaves is removed again.
 * @throws whatever ended it: nothing else has changed
 */
export async function fetchSnapshot(
  parts: FetchParts,
  { from, index, signal }: { readonly from: NodeId; readonly index: LogIndex; readonly signal: AbortSignal },
): Promise<Fetched> {
  const { log, machine, disk, diskLow } = parts;
  const { directory, generation: inForce } = log.place;
  const generation = inForce + 1;
  const paths = nodePaths(directory);
  try {
    await disk.removeDirectory(paths.generation(generation)); // left by one that could not be removed
    await log.createGenerationLog(generation);
    const { meta, state } = await load(received(parts, { from, index, signal }), {
      index,
      loader: await machine.loadBeside(paths.state(generation)),
      diskLow,
    });
    failpoint('snapshot.after_load');
    // Reads all of it once more, from the disk, and sums it up: that the records are those of the leader's state shows only now.
    const store = await machine.openBeside(paths.state(generation)).catch((error: unknown) => {
      if (!(error instanceof StorageDamaged)) throw error;
      throw new CodecError(`what node ${from} sent is not whole when it is read back (${error.message})`, { cause: error });
    });
    try {
      if (store.metaAtOpen.digest !== state.digest) throw new CodecError('the state on disk is not the one that came');
      for (const name of [paths.state(generation), paths.generation(generation), directory]) await disk.syncDirectory(name);
      signal.throwIfAborted();
      return { meta, generation, store };
    } catch (error) {
      await store.close();
      throw error;
    }
  } catch (error) {
    await disk.removeDirectory(paths.generation(generation));
    throw error;
  }
}

async function load(
  stream: AsyncIterable<Uint8Array>,
  { index, loader, diskLow }: { readonly index: LogIndex; readonly loader: StateLoader } & Pick<FetchParts, 'diskLow'>,
): Promise<{ readonly meta: SnapshotMeta; readonly state: StateMeta }> {
  try {
    let meta: SnapshotMeta | undefined;
    let state: StateMeta | undefined;
    for await (const part of readSnapshot(stream)) {
      if (diskLow()) throw new StorageFailed('the data disk is below its reserve');
      if (part.type === 'meta') {
        meta = part.meta;
        if (meta.index < index) throw new CodecError(`a snapshot at ${meta.index} came where one at ${index} was offered`);
      } else if (part.type === 'records') await loader.add(part.rows);
      else state = part.state;
    }
    if (meta === undefined || state === undefined) throw new CodecError('the snapshot is cut short');
    await loader.finish(state);
    return { meta, state };
  } catch (error) {
    await loader.abandon();
    throw error;
  }
}

/** The peer's stream until it ends, is given up, or stands still. Time in which this node is the slow one does not count. */
async function* received(
  { link, stallMs, every }: FetchParts,
  { from, index, signal }: { readonly from: NodeId; readonly index: LogIndex; readonly signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  const stalled = new AbortController();
  const expired = () => stalled.abort(new Error(`node ${from} sent nothing of its snapshot for ${stallMs} ms`));
  const idle = new IdleWatch({ limitMs: stallMs, every, expired });
  const either = AbortSignal.any([signal, stalled.signal]);
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  aborted.catch(() => undefined); // it is raced against, when something is waited for
  either.addEventListener('abort', () => reject(either.reason), { once: true });
  let chunks: AsyncIterator<Uint8Array> | undefined;
  try {
    either.throwIfAborted();
    idle.waits();
    const stream = await Promise.race([link.open(from, index, either), aborted]);
    chunks = stream[Symbol.asyncIterator]();
    for (;;) {
      idle.waits();
      const chunk = await Promise.race([chunks.next(), aborted]);
      idle.came();
      if (chunk.done === true) {
        chunks = undefined;
        return;
      }
      yield chunk.value;
    }
  } finally {
    idle.stop();
    chunks?.return?.()?.catch(() => undefined); // not waited for: what stands still may never answer
  }
}
