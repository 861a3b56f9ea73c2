import { expect } from 'chai';
import { bootstrapBase } from '../../src/confchange/conf-state.ts';
import type { PeerStatus } from '../../src/core/contract/raft-core.ts';
import { Compaction, type StoredLog } from '../../src/driver/compaction.ts';
import { type DriverLimits, driverLimits } from '../../src/driver/limits.ts';

const empty: StoredLog = { base: bootstrapBase(1), lastIndex: 0, bytes: 0, flushedIndex: 0 };
const compaction = (limits: Partial<DriverLimits>, stored: Partial<StoredLog> = {}) =>
  new Compaction({ ...driverLimits, ...limits }, { ...empty, ...stored });
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
      name: 'keeps the entries that the slowest active peer lacks',
      flushedIndex: 150,
      peers: [peer({ match: 120 })],
      expected: 120,
    },
    { name: 'keeps no more entries than the limit for any peer', flushedIndex: 150, peers: [peer({ match: 5 })], expected: 70 },
    { name: 'ignores an inactive peer', flushedIndex: 150, peers: [peer({ match: 120, active: false })], expected: 140 },
    {
      name: 'keeps the entries that follow a snapshot under way, even for an inactive peer',
      flushedIndex: 150,
      peers: [peer({ match: 3, pendingSnapshot: 130, active: false, state: 'snapshot' })],
      expected: 130,
    },
  ]) {
    it(name, () => {
      expect(compaction(byEntries).target({ baseIndex: 0, flushedIndex, peers: () => peers })).to.equal(expected);
    });
  }

  it('limits the bytes of the log too: a log of few large entries is cut to its trailing bytes', () => {
    const subject = compaction({ compactAfterBytes: 10 * 2 ** 20, keepTrailingBytes: 2 * 2 ** 20 });
    const data = new Uint8Array(2 ** 20);
    const none = () => [];
    for (let index = 1; index <= 10; index++) subject.applied({ index, term: 1, type: 'normal', data });
    expect(subject.target({ baseIndex: 0, flushedIndex: 10, peers: none })).to.equal(undefined);
    subject.applied({ index: 11, term: 1, type: 'normal', data });
    const target = subject.target({ baseIndex: 0, flushedIndex: 11, peers: none });
    expect(target).to.equal(8);
    subject.noteBase(target ?? 0);
    expect(subject.target({ baseIndex: 8, flushedIndex: 11, peers: none })).to.equal(undefined);
  });

  const none = () => [];
  const mebibyte = new Uint8Array(2 ** 20);
  const byBytes = { compactAfterBytes: 10 * 2 ** 20, keepTrailingBytes: 2 * 2 ** 20, keepForPeersBytes: 6 * 2 ** 20 };

  it('counts the bytes that the log had when it was opened', () => {
    const subject = compaction(byBytes, { lastIndex: 1_000, bytes: 20 * 2 ** 20, flushedIndex: 1_000 });
    const target = subject.target({ baseIndex: 0, flushedIndex: 1_000, peers: none }) ?? 0;
    expect(target, 'about 18 of 20 MiB').to.be.within(875, 900);
    subject.noteBase(target);
    expect(subject.target({ baseIndex: target, flushedIndex: 1_000, peers: none })).to.equal(undefined);
  });

  it('counts the unflushed bytes of that log when they are applied, and only once', () => {
    const subject = compaction(byBytes, { lastIndex: 16, bytes: 16 * 2 ** 20, flushedIndex: 8 });
    expect(subject.target({ baseIndex: 0, flushedIndex: 8, peers: none })).to.equal(undefined);
    subject.applied({ index: 9, term: 1, type: 'normal', data: mebibyte });
    subject.applied({ index: 10, term: 1, type: 'normal', data: mebibyte });
    expect(subject.target({ baseIndex: 0, flushedIndex: 10, peers: none }), '10 MiB').to.equal(undefined);
    subject.applied({ index: 11, term: 1, type: 'normal', data: mebibyte });
    expect(subject.target({ baseIndex: 0, flushedIndex: 11, peers: none })).to.equal(8);
  });

  it('keeps no more bytes than the limit for any peer', () => {
    const subject = compaction(byBytes);
    for (let index = 1; index <= 12; index++) subject.applied({ index, term: 1, type: 'normal', data: mebibyte });
    const slow = (match: number) => () => [peer({ match })];
    expect(subject.target({ baseIndex: 0, flushedIndex: 12, peers: slow(7) })).to.equal(7);
    expect(subject.target({ baseIndex: 0, flushedIndex: 12, peers: slow(1) }), '6 MiB').to.equal(5);
  });

  it('starts counting again after a snapshot', () => {
    const subject = compaction(byBytes);
    for (let index = 1; index <= 12; index++) subject.applied({ index, term: 1, type: 'normal', data: mebibyte });
    subject.noteBase(50);
    subject.applied({ index: 51, term: 1, type: 'normal', data: mebibyte });
    expect(subject.target({ baseIndex: 50, flushedIndex: 51, peers: none })).to.equal(undefined);
    for (let index = 52; index <= 61; index++) subject.applied({ index, term: 1, type: 'normal', data: mebibyte });
    expect(subject.target({ baseIndex: 50, flushedIndex: 61, peers: none })).to.equal(58);
  });

  describe('while a lagging peer holds it back', () => {
    /** Flushes one entry at a time, with a peer that lags this far. Returns the steps in which the log was compacted. */
    function steps(
      limits: Partial<DriverLimits>,
      { flushes, behind, bytes }: { flushes: number; behind: number; bytes: number },
    ) {
      const subject = compaction({ keepTrailingEntries: 10, ...limits });
      const data = new Uint8Array(bytes);
      const found: number[] = [];
      let baseIndex = 0;
      for (let index = 1; index <= flushes; index++) {
        subject.applied({ index, term: 1, type: 'normal', data });
        const peers = () => [peer({ match: Math.max(0, index - behind) })];
        const target = subject.target({ baseIndex, flushedIndex: index, peers });
        if (target === undefined) continue;
        found.push(target - baseIndex);
        subject.noteBase(target);
        baseIndex = target;
      }
      return found;
    }

    it('deletes at least a tenth of the limit that triggers it, in entries', () => {
      expect(steps({ compactAfterEntries: 1_000 }, { flushes: 3_000, behind: 2_000, bytes: 1 })).to.deep.equal(
        Array(10).fill(100),
      );
    });

    it('deletes at least a tenth in bytes', () => {
      const found = steps({ compactAfterBytes: 20 * 2 ** 20 }, { flushes: 60, behind: 40, bytes: 2 ** 20 });
      expect(found).to.deep.equal(Array(10).fill(2));
    });

    it('runs at every entry if a tenth of the kept entries rounds to zero', () => {
      expect(steps({ compactAfterEntries: 5, keepTrailingEntries: 5 }, { flushes: 20, behind: 8, bytes: 1 })).to.deep.equal(
        Array(12).fill(1),
      );
    });
  });
});
