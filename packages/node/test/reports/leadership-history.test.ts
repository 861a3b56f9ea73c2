import { expect } from 'chai';
import { LeadershipHistory } from '../../src/reports/leadership-history.ts';

describe('the history of leaders', () => {
  it('has one entry for each term with a leader, with the time when this node learned of it', () => {
    let nowMs = 0;
    const history = new LeadershipHistory(() => nowMs);
    for (const [term, leader] of [
      [1, 0],
      [1, 1],
      [1, 0], // silent for a while
      [1, 1],
      [2, 0],
      [3, 2],
    ] as const) {
      nowMs += 10;
      history.statusChanged({ term, leader });
    }
    expect(history.changes).to.deep.equal([
      { term: 1, leader: 1, utcMs: 20 },
      { term: 3, leader: 2, utcMs: 60 },
    ]);
  });

  it('keeps the newest 32', () => {
    const history = new LeadershipHistory(() => 0);
    for (let term = 1; term <= 100; term++) history.statusChanged({ term, leader: 1 });
    expect(history.changes.map(({ term }) => term)).to.deep.equal(Array.from({ length: 32 }, (_, n) => n + 69));
  });
});
