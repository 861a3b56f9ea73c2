import { addToDigest, emptyDigest, type ReplicatedRecord, type ReplicatedSnapshot, recordDigest } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { snapshotToSend, stateFrames } from '../../src/sessions/state-frames.ts';
import type { Frame } from '../../src/stream/frame.ts';

const [set, first, second] = ['aa', 'b1', 'b2'].map((digits) => digits.repeat(16)) as [string, string, string];
const epoch = (number: number, id: string) => ({ number, id, start: 5 });
const records: ReplicatedRecord[] = ['a', 'b', 'c'].map((path) => ({ path, value: Buffer.alloc(9), revision: 7 }));

function snapshotOf(role: 'primary' | 'demoted' | 'secondary', epochs = [epoch(1, first)]) {
  const closed = { count: 0 };
  const snapshot: ReplicatedSnapshot = {
    state: { role, set, local: [], epochs, index: 6, offset: 0, seen: 1 },
    index: 9,
    valuesWritten: 4,
    get: () => undefined,
    async *pages() {
      yield [];
      yield records;
    },
    close: async () => {
      closed.count += 1;
    },
  };
  return { snapshot, closed };
}

async function framesOf(snapshot: ReplicatedSnapshot, chunkBytes: number): Promise<Frame[]> {
  const frames: Frame[] = [];
  for await (const frame of stateFrames(snapshot, { attempt: 'one', chunkBytes })) frames.push(frame);
  return frames;
}

describe('stateFrames', () => {
  it('sends the records in chunks, with their count and digest at the end', async () => {
    const digest = records.map(recordDigest).reduce(addToDigest, emptyDigest);
    const frames = await framesOf(snapshotOf('primary').snapshot, 20);
    expect(frames).to.deep.equal([
      { kind: 'state', attempt: 'one', epochs: [epoch(1, first)], index: 9, valuesWritten: 4 },
      { kind: 'records', attempt: 'one', chunk: 0, records: records.slice(0, 2) },
      { kind: 'records', attempt: 'one', chunk: 1, records: records.slice(2) },
      { kind: 'end', attempt: 'one', records: 3, digest },
    ]);
  });

  it('sends a record that is larger than a chunk', async () => {
    expect((await framesOf(snapshotOf('primary').snapshot, 1)).map(({ kind }) => kind)).to.deep.equal([
      'state',
      'records',
      'records',
      'records',
      'end',
    ]);
  });
});

describe('snapshotToSend', () => {
  const present = snapshotOf('primary').snapshot.state;

  it('returns the state of a primary, and of one that was demoted', async () => {
    for (const role of ['primary', 'demoted'] as const) {
      const { snapshot, closed } = snapshotOf(role);
      expect(await snapshotToSend({ replication: present, replicatedSnapshot: () => snapshot })).to.equal(snapshot);
      expect(closed.count).to.equal(0);
    }
  });

  it('closes and refuses a state of another epoch or role, or from before a restore', async () => {
    for (const [{ snapshot, closed }, replication] of [
      [snapshotOf('secondary'), present],
      [snapshotOf('primary', [epoch(2, second)]), present],
      [snapshotOf('primary'), { ...present, restoredAt: 10 }],
    ] as const) {
      expect(await snapshotToSend({ replication, replicatedSnapshot: () => snapshot })).to.equal(undefined);
      expect(closed.count).to.equal(1);
    }
    expect(await snapshotToSend({ replication: present, replicatedSnapshot: () => undefined })).to.equal(undefined);
  });
});
