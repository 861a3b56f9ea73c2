import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { copyWith } from '../../../../../scripts/sim-mutant.ts';
import { type Exploration, explore, type System } from '../../../src/sim/exhaustive/explore.ts';
import { SmallCluster, type SmallClusterOptions } from '../../../src/sim/exhaustive/small-cluster.ts';
import { mutants } from '../mutants.ts';

const small: SmallClusterOptions = { nodes: 3, termMax: 2, proposalsMax: 3, passesMax: 4, isLed: false };

/** Counts up to three by two ways that meet again. */
class Counter implements System {
  readonly begin = '0';
  readonly #wrong: number;
  constructor(wrong: number) {
    this.#wrong = wrong;
  }
  ways(state: string): readonly (() => string)[] {
    return Number(state) < 3 ? [1, 2].map((more) => () => this.#counted(Number(state) + more)) : [];
  }
  #counted(count: number): string {
    if (count === this.#wrong) throw new Error(`${count} is wrong`);
    return String(count);
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
    expect(failure).to.deep.equal({ choices: [1, 1], message: '4 is wrong' });
  });
});

describe('three cores', () => {
  for (const [name, isLed, depthMax, statesMin] of [
    ['from nothing', false, 7, 4_000],
    ['from a leader', true, 6, 4_000],
  ] as const) {
    it(`keep their rules in every order of messages and passing time, ${name} to depth ${depthMax}`, () => {
      const { failure, states } = explore(new SmallCluster({ ...small, isLed }), { depthMax });
      expect(failure).to.equal(undefined);
      expect(states).to.be.at.least(statesMin);
    }).timeout(240_000);
  }

  it('are found to commit too early where a follower’s commit index outruns what it was shown', async () => {
    const mutant = mutants.find((each) => each.name === 'a heartbeat tells a commit index beyond what the peer has');
    if (mutant === undefined) throw new Error('no such fault');
    const { folder, folders } = copyWith(mutant);
    const load = (file: string) => import(pathToFileURL(join(folders.raftCore, 'src/sim/exhaustive', file)).href);
    const { SmallCluster: Faulty }: { SmallCluster: typeof SmallCluster } = await load('small-cluster.ts');
    rmSync(folder, { recursive: true });
    const { failure } = explore(new Faulty({ ...small, isLed: true }), { depthMax: 6 });
    expect(failure?.message).to.match(/^what is committed is in the log/);
  }).timeout(240_000);
});
