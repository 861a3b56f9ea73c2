import { type Entry, LogDamage } from '@transitd/raft-core';
import { expect } from 'chai';
import { MemoryDisk, SimClock } from '../../src/index.ts';

const entry = (index: number, term = 1): Entry => ({ index, term, type: 'normal', data: Uint8Array.of(index) });
const state = (term: number, vote: number) => ({ term, vote, commit: 0 });

function disk(last: number): MemoryDisk {
  const stored = new MemoryDisk({ nodeId: 1, clusterId: 'c' });
  for (let index = 1; index <= last; index++) stored.store(entry(index));
  return stored;
}

describe('MemoryDisk', () => {
  it('reports damage if the log ends below its high-water mark, and opens a log that lost entries above it', () => {
    const stored = disk(3);
    stored.raiseMark();
    stored.store(entry(4));
    stored.rotEntry(4);
    stored.open(new SimClock());
    expect(stored.lastIndex).to.equal(3);
    stored.rotEntry(3);
    expect(() => stored.open(new SimClock())).to.throw(LogDamage);
  });

  it('lowers the mark before it truncates', () => {
    const stored = disk(5);
    stored.raiseMark();
    stored.store(entry(3, 2));
    expect(stored.mark).to.equal(2);
    stored.open(new SimClock());
    expect(stored.lastIndex).to.equal(3);
  });

  for (const rotten of [0, 1] as const) {
    it(`keeps its vote when slot ${rotten} is no longer readable, and repairs the slot at the next start`, () => {
      const stored = disk(0);
      stored.hardState = state(1, 1);
      stored.hardState = state(2, 3);
      stored.rotSlot(rotten);
      expect(stored.hardState).to.deep.equal(state(2, 3));
      stored.open(new SimClock());
      stored.rotSlot(rotten === 0 ? 1 : 0);
      expect(stored.hardState).to.deep.equal(state(2, 3));
    });
  }

  it('may have an older vote in its second slot while a newer one, not sent to any node yet, is being written', () => {
    const stored = disk(0);
    stored.hardState = state(1, 1);
    stored.storeSlot(0, state(2, 2));
    expect(stored.hardState).to.deep.equal(state(2, 2));
    stored.rotSlot(0);
    expect(stored.hardState).to.deep.equal(state(1, 1));
  });

  it('starts over after a snapshot with its term and vote', () => {
    const stored = disk(3);
    stored.hardState = state(4, 2);
    stored.install({ ...stored.base, index: 9, term: 3 });
    expect([stored.lastIndex, stored.mark, stored.entries.length]).to.deep.equal([9, 9, 0]);
    expect(stored.hardState).to.deep.equal(state(4, 2));
  });
});
