import { expect } from 'chai';
import { SimClock } from '../../src/fakes/sim-clock.ts';
import { type Crash, SimNode, type SimNodeOptions } from '../../src/fakes/sim-node.ts';
import { Observed, restart, written } from './observed.ts';

const limits = { compactAfterEntries: 6, keepTrailingEntries: 2, flushIntervalMs: 0 };
const options: SimNodeOptions = { driver: { limits } };
const names = Array.from({ length: 16 }, (_, i) => `n${i}`);

/** Writes, flushes and compacts, and crashes after `steps` events. */
function crashedAfter(steps: number, crash: Crash): { node: SimNode; seen: Observed; ended: boolean } {
  const clock = new SimClock();
  const node = new SimNode(clock);
  const seen = new Observed();
  const run = node.start(options);
  let proposed = 0;
  let ran = 0;
  for (; ran < steps && seen.proposals.length < names.length; ran++) {
    clock.step();
    const name = names[proposed];
    // Two or three at a time, so that crashes also happen between the entries of one write.
    if (run.driver.status().ready && name !== undefined && proposed - seen.proposals.length < 3) {
      seen.propose(run, name);
      proposed += 1;
    }
  }
  node.crash(run, crash);
  return { node, seen, ended: ran < steps };
}

describe('a crash', () => {
  it('at any event of a run loses nothing that was answered, applies nothing twice, and never lowers term or vote', () => {
    let crashes = 0;
    for (const landed of [0, 1, 2, 9]) {
      for (const flushLands of [false, true]) {
        for (let steps = 0; ; steps++) {
          const { node, seen, ended } = crashedAfter(steps, { landed, flushLands });
          if (ended) break;
          crashes += 1;
          const { term, vote } = node.disk.hardState;
          const answered = seen.proposals.map(({ name, outcome }) => {
            expect(outcome.kind, `crash after ${steps}`).to.equal('applied');
            return name;
          });

          const next = restart(node, options);
          // Every answered entry is there, in order; after them at most the entries under way.
          expect(written(next).slice(0, answered.length), `crash after ${steps}`).to.deep.equal(answered);
          expect(written(next), `crash after ${steps}`).to.deep.equal(names.slice(0, written(next).length));
          expect(node.disk.hardState.term).to.equal(term + 1);
          expect([0, 1]).to.include(vote);
          expect(next.driver.status().term).to.be.above(term);
        }
      }
    }
    expect(crashes).to.be.above(500);
  });

  it('during each of many starts only raises the term', () => {
    const clock = new SimClock();
    const node = new SimNode(clock);
    let term = 0;
    for (let steps = 0; steps < 40; steps++) {
      const run = node.start();
      for (let step = 0; step < steps % 13; step++) clock.step();
      node.crash(run, { landed: steps % 2, flushLands: false });
      expect(node.disk.hardState.term).to.be.within(term, term + 1);
      term = node.disk.hardState.term;
    }
    expect(term).to.be.above(5);
    restart(node);
  });
});
