import { expect } from 'chai';
import { type Exploration, explore, type System } from '../../src/exhaustive/explore.ts';
import type { State } from '../../src/exhaustive/level.ts';

/** A counter up to three with two transitions, which lead to the same state. */
class Counter implements System {
  readonly initial = [0];
  readonly #wrong: number;
  constructor(wrong: number) {
    this.#wrong = wrong;
  }
  transitions([count = 0]: State): readonly number[] {
    return count < 3 ? [1, 2] : [];
  }
  take([count = 0]: State, more: number): State {
    if (count + more === this.#wrong) throw new Error(`${count + more} is wrong`);
    return [count + more];
  }
}

describe('explore', () => {
  it('plays every choice in every state once', () => {
    const all: Exploration = explore(new Counter(9), { depthMax: 14 });
    expect(all).to.deep.equal({ states: 5, transitions: 6, depth: 14, byDepth: [1, 2, 2, 0] });
  });

  it('ends at its depth, and at its number of states', () => {
    expect(explore(new Counter(9), { depthMax: 1 })).to.include({ states: 3, depth: 1 });
    expect(explore(new Counter(9), { depthMax: 14, statesMax: 2 })).to.include({ states: 3, depth: 0 });
  });

  it('gives the fewest choices that lead to a failure', () => {
    const { failure } = explore(new Counter(4), { depthMax: 14 });
    expect(failure).to.deep.equal({ choices: [2, 2], message: '4 is wrong' });
  });
});
