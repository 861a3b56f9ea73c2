import { expect } from 'chai';
import { TestClock } from '../../../process/test/test-clock.ts';
import { LeadershipHistory } from '../../src/reports/leadership-history.ts';

describe('the history of leaders', () => {
  it('has one entry for each term with a leader, with the time when this node learned of it', () => {
    const clock = new TestClock();
    const history = new LeadershipHistory(clock);
    for (const [term, leader] of [
      [1, 0],
      [1, 1],
      [1, 0], // silent for a while
      [1, 1],
      [2, 0],
      [3, 2],
    ] as const) {
      clock.ms += 10;
      history.statusChanged({ term, leader });
    }
    expect(history.changes).to.deep.equal([
      { term: 1, leader: 1, utcMs: 1_000_020 },
      { term: 3, leader: 2, utcMs: 1_000_060 },
    ]);
  });

  it('keeps the newest 32', () => {
    const history = new LeadershipHistory(new TestClock());
    for (let term = 1; term <= 100; term++) history.statusChanged({ term, leader: 1 });
    expect(history.changes.map(({ term }) => term)).to.deep.equal(Array.from({ length: 32 }, (_, n) => n + 69));
  });
});
