import {
  addToDigest,
  emptyDigest,
  type KeyValueMachine,
  type ReplicatedRecord,
  type ReplicatedSnapshot,
  recordDigest,
  sameEpoch,
} from '@transitd/storage-fsm';
import type { Frame } from '../stream/frame.ts';

/**
 * Returns the state on disk to send to a secondary. Undefined if it is of an earlier epoch or role than the present state, or from before a
 * restore, which no outcomes lead across: the secondary then asks again, after the next flush.
 */
export async function snapshotToSend(
  machine: Pick<KeyValueMachine, 'replication' | 'replicatedSnapshot'>,
): Promise<ReplicatedSnapshot | undefined> {
  const snapshot = machine.replicatedSnapshot();
  const [current, stored] = [machine.replication?.epochs.at(-1), snapshot?.state.epochs.at(-1)];
  const isSending = snapshot?.state.role === 'primary' || snapshot?.state.role === 'demoted';
  const isRestored = snapshot?.state.restoredAt === machine.replication?.restoredAt;
  if (isSending && isRestored && current !== undefined && stored !== undefined && sameEpoch(current, stored)) return snapshot;
  await snapshot?.close();
  return undefined;
}

/**
 * Yields the frames that carry a whole state. The outcomes after the index of the snapshot must be held until the last frame is sent. The
 * caller closes the snapshot.
 * @param attempt - a name that no other transfer has
 * @param chunkBytes - approximate size of the records of a frame; one record may be larger
 */
export async function* stateFrames(
  snapshot: ReplicatedSnapshot,
  { attempt, chunkBytes }: { readonly attempt: string; readonly chunkBytes: number },
): AsyncGenerator<Frame> {
  const { state, index, valuesWritten } = snapshot;
  const { epochs, restoredAt } = state;
  yield { kind: 'state', attempt, epochs, index, valuesWritten, ...(restoredAt !== undefined && { restoredAt }) };
  let [count, chunk, digest] = [0, 0, emptyDigest];
  for await (const records of chunksOf(snapshot.pages(), chunkBytes)) {
    count += records.length;
    digest = records.map(recordDigest).reduce(addToDigest, digest);
    yield { kind: 'records', attempt, chunk, records };
    chunk += 1;
  }
  yield { kind: 'end', attempt, records: count, digest };
}

/** Yields at least one chunk, so that even a state without records begins an attempt. */
async function* chunksOf(
  pages: AsyncIterable<readonly ReplicatedRecord[]>,
  bytesMax: number,
): AsyncGenerator<readonly ReplicatedRecord[]> {
  let [chunk, bytes]: [ReplicatedRecord[], number] = [[], 0];
  for await (const page of pages)
    for (const record of page) {
      const size = record.path.length + record.value.length;
      if (chunk.length > 0 && bytes + size > bytesMax) {
        yield chunk;
        [chunk, bytes] = [[], 0];
      }
      chunk.push(record);
      bytes += size;
    }
  yield chunk;
}
