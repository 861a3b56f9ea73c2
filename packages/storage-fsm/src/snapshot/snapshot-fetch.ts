import { type Clock, CodecError, type LogIndex, type NodeId, type SnapshotMeta } from '@transitd/raft-core';
import type { Disk } from '../directory/disk.ts';
import { nodePaths } from '../directory/node-directory.ts';
import { StorageDamaged, StorageFailed } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { SegmentLog } from '../log/segment-log.ts';
import type { KeyValueMachine } from '../state/key-value-machine.ts';
import type { StateLoader } from '../state/state-loader.ts';
import type { StateMeta } from '../state/state-record.ts';
import type { StateStore } from '../state/state-store.ts';
import { IdleWatch } from './idle-watch.ts';
import { readSnapshot } from './snapshot-stream.ts';

/** Requests a peer's state. The server implements it, since it knows addresses and connections. */
export interface SnapshotLink {
  /**
   * Requests a snapshot at `index` or above from `from`: the bytes of its {@link NodeSnapshots.stream}, split anywhere. Rejects when the
   * peer cannot be reached or refuses; the stream throws when the connection breaks. `signal` aborts both.
   */
  open(from: NodeId, index: LogIndex, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

/** A fetched generation, complete and durable, that is not yet the current one. */
export interface Fetched {
  readonly meta: SnapshotMeta;
  readonly generation: number;
  readonly store: StateStore;
}

export interface FetchParts {
  readonly log: Pick<SegmentLog, 'place' | 'createGenerationLog'>;
  readonly machine: Pick<KeyValueMachine, 'createReplacement' | 'openReplacement'>;
  readonly link: SnapshotLink;
  readonly disk: Disk;
  /** True while the data disk is below its reserve: a second state must not fill the disk, or log writes fail and the node stops. */
  readonly diskLow: () => boolean;
  /** The stream fails when nothing arrives for this long. */
  readonly stallMs: number;
  readonly every: Clock['every'];
}

/**
 * Streams a snapshot into a new generation: its state and an empty log. After a failure it removes that generation again.
 * @throws the error that ended the fetch; nothing has changed then
 */
export async function fetchSnapshot(
  parts: FetchParts,
  { from, index, signal }: { readonly from: NodeId; readonly index: LogIndex; readonly signal: AbortSignal },
): Promise<Fetched> {
  const { log, machine, disk, diskLow } = parts;
  const { directory, generation: current } = log.place;
  const generation = current + 1;
  const paths = nodePaths(directory);
  try {
    await disk.removeDirectory(paths.generation(generation)); // left by an earlier fetch that could not remove it
    await log.createGenerationLog(generation);
    const { meta, state } = await load(received(parts, { from, index, signal }), {
      index,
      loader: await machine.createReplacement(paths.state(generation)),
      diskLow,
    });
    failpoint('snapshot.after_load');
    // Opening reads everything back from the disk and checks the digest: only this proves that the records are those of the leader's state.
    const store = await machine.openReplacement(paths.state(generation)).catch((error: unknown) => {
      if (!(error instanceof StorageDamaged)) throw error;
      throw new CodecError(`the snapshot of node ${from} is damaged when read back from the disk (${error.message})`, {
        cause: error,
      });
    });
    try {
      if (store.metaAtOpen.digest !== state.digest) throw new CodecError('the state on disk is not the one that was received');
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
        if (meta.index < index)
          throw new CodecError(`received a snapshot at index ${meta.index}, expected index ${index} or above`);
      } else if (part.type === 'records') await loader.add(part.rows);
      else state = part.state;
    }
    if (meta === undefined || state === undefined) throw new CodecError('the snapshot is truncated');
    await loader.finish(state);
    return { meta, state };
  } catch (error) {
    await loader.abandon();
    throw error;
  }
}

/**
 * Yields the peer's stream until it ends, is aborted, or stalls. Time that this node spends on received chunks does not count as a stall.
 */
async function* received(
  { link, stallMs, every }: FetchParts,
  { from, index, signal }: { readonly from: NodeId; readonly index: LogIndex; readonly signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  const stalled = new AbortController();
  const expired = () => stalled.abort(new Error(`node ${from} sent no snapshot data for ${stallMs} ms`));
  const idle = new IdleWatch({ limitMs: stallMs, every, expired });
  const either = AbortSignal.any([signal, stalled.signal]);
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  aborted.catch(() => undefined); // handled by the races below
  either.addEventListener('abort', () => reject(either.reason), { once: true });
  let chunks: AsyncIterator<Uint8Array> | undefined;
  try {
    either.throwIfAborted();
    idle.waitBegan();
    const stream = await Promise.race([link.open(from, index, either), aborted]);
    chunks = stream[Symbol.asyncIterator]();
    for (;;) {
      idle.waitBegan();
      const chunk = await Promise.race([chunks.next(), aborted]);
      idle.waitEnded();
      if (chunk.done === true) {
        chunks = undefined;
        return;
      }
      yield chunk.value;
    }
  } finally {
    idle.stop();
    chunks?.return?.()?.catch(() => undefined); // not awaited: a stalled stream may never settle
  }
}
