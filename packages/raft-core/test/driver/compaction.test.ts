import { expect } from 'chai';
import type { PeerStatus } from '../../src/core/raft-core.ts';
import { Compaction } from '../../src/driver/compaction.ts';
import { type DriverLimits, driverLimits } from '../../src/driver/limits.ts';

const compaction = (limits: Partial<DriverLimits>) => new Compaction({ ...driverLimits, ...limits });
const peer = (change: Partial<PeerStatus>): PeerStatus => ({
  id: 2,
  learner: false,
  state: 'replicate',
  match: 0,
  next: 1,
  active: true,
  silentMs: 0,
  fit: true,
  ...change,
});

describe('Compaction', () => {
  const byEntries = { compactAfterEntries: 100, keepTrailingEntries: 10, keepForPeersEntries: 80 };
  for (const { name, flushedIndex, peers, expected } of [
    { name: 'leaves a short log as it is', flushedIndex: 100, peers: [], expected: undefined },
    { name: 'keeps the trailing entries', flushedIndex: 101, peers: [], expected: 91 },
    {
      name: 'keeps what the slowest peer that is heard of lacks',
      flushedIndex: 150,
      peers: [peer({ match: 120 })],
      expected: 120,
    },
    { name: 'keeps no more than that for anybody', flushedIndex: 150, peers: [peer({ match: 5 })], expected: 70 },
    { name: 'forgets about who is not heard of', flushedIndex: 150, peers: [peer({ match: 120, active: false })], expected: 140 },
    {
      name: 'keeps what will follow a snapshot under way, heard of or not',
      flushedIndex: 150,
      peers: [peer({ match: 3, pendingSnapshot: 130, active: false, state: 'snapshot' })],
      expected: 130,
    },
  ]) {
    it(name, () => {
      expect(compaction(byEntries).target({ baseIndex: 0, flushedIndex, peers: () => peers })).to.equal(expected);
    });
  }

  it('goes by bytes too: a log of few large entries is cut to its trailing bytes', () => {
    const subject = compaction({ compactAfterBytes: 10 * 2 ** 20, keepTrailingBytes: 2 * 2 ** 20 });
    const data = new Uint8Array(2 ** 20);
    const none = () => [];
    for (let index = 1; index <= 11; index++) subject.applied({ index, term: 1, type: 'normal', data });
    expect(subject.target({ baseIndex: 0, flushedIndex: 11, peers: none })).to.equal(undefined);
    subject.applied({ index: 12, term: 1, type: 'normal', data });
    const target = subject.target({ baseIndex: 0, flushedIndex: 12, peers: none });
    expect(target).to.equal(9);
    subject.compacted(target ?? 0);
    expect(subject.target({ baseIndex: 9, flushedIndex: 12, peers: none })).to.equal(undefined);
  });
});
