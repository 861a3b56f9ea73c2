import { expect } from 'chai';
import type { PeerStatus } from '../../src/core/contract/raft-core.ts';
import { Promotion } from '../../src/driver/promotion.ts';

const learner = (match: number, active = true): PeerStatus => ({
  id: 4,
  learner: true,
  state: 'replicate',
  match,
  next: match + 1,
  active,
  silentMs: 0,
  fit: true,
});
const limits = { electionMs: 1_000, promotionStableMs: 0 };

describe('Promotion, thesis §4.2.1', () => {
  it('is due after a round of catching up shorter than half an election timeout, though the log keeps growing', () => {
    const subject = new Promotion(limits);
    expect(subject.due([learner(0)], { term: 1, lastIndex: 100, nowMs: 0 })).to.deep.equal([]);
    expect(subject.due([learner(99)], { term: 1, lastIndex: 500, nowMs: 800 }), 'not there yet').to.deep.equal([]);
    expect(subject.due([learner(100)], { term: 1, lastIndex: 600, nowMs: 900 }), 'a long round').to.deep.equal([]);
    expect(subject.due([learner(600)], { term: 1, lastIndex: 900, nowMs: 1_399 })).to.deep.equal([4]);
  });

  it('waits until the learner has kept up for the required time, without a long round in between', () => {
    const subject = new Promotion({ ...limits, promotionStableMs: 1_000 });
    const due = (nowMs: number) => subject.due([learner(100)], { term: 1, lastIndex: 100, nowMs });
    expect([0, 300, 600, 900].map((nowMs) => due(nowMs).length)).to.deep.equal([0, 0, 0, 0]);
    expect(due(1_000)).to.deep.equal([4]);
    expect(due(2_000), 'a long round').to.deep.equal([]);
    expect(due(2_400)).to.deep.equal([]);
    expect([2_800, 3_000].map(due)).to.deep.equal([[], [4]]);
  });

  it('starts over for a learner that was silent, and under another leader', () => {
    const subject = new Promotion(limits);
    subject.due([learner(100)], { term: 1, lastIndex: 100, nowMs: 0 });
    expect(subject.due([learner(100, false)], { term: 1, lastIndex: 100, nowMs: 100 })).to.deep.equal([]);
    expect(subject.due([learner(100)], { term: 2, lastIndex: 100, nowMs: 200 })).to.deep.equal([]);
    expect(subject.due([learner(100)], { term: 2, lastIndex: 100, nowMs: 300 })).to.deep.equal([4]);
  });
});
