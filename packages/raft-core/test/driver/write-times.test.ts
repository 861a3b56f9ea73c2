import { expect } from 'chai';
import { WriteTimes } from '../../src/driver/write-times.ts';

describe('WriteTimes', () => {
  it('returns the median of the write times', () => {
    const times = new WriteTimes();
    expect(times.typicalMs(0)).to.equal(undefined);
    let nowMs = 0;
    for (const tookMs of [5, 1, 900, 2, 3]) {
      times.note(nowMs, nowMs + tookMs);
      nowMs += tookMs;
    }
    expect(times.typicalMs(nowMs)).to.equal(3);
  });

  it('does not count the time that a write waited for the previous write', () => {
    const times = new WriteTimes();
    for (const [startedMs, endMs] of [
      [0, 100],
      [1, 200],
      [2, 300],
    ] as const)
      times.note(startedMs, endMs);
    expect(times.typicalMs(300)).to.equal(100);
  });

  it('counts writes that share a sync once', () => {
    const times = new WriteTimes();
    for (const [startedMs, endMs] of [
      [0, 600],
      [1, 1_200],
      [2, 1_201],
      [3, 1_202],
      [602, 1_800],
      [603, 1_801],
      [604, 1_802],
    ] as const)
      times.note(startedMs, endMs);
    expect(times.typicalMs(1_802)).to.be.within(598, 600);
  });

  it('forgets times older than some seconds', () => {
    const times = new WriteTimes();
    times.note(0, 600);
    expect(times.typicalMs(15_000)).to.equal(600);
    expect(times.typicalMs(15_600)).to.equal(undefined);
  });
});
