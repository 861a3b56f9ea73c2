import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { copyWith } from '../../../../scripts/sim-mutant.ts';
import { explore, type System } from '../../src/exhaustive/explore.ts';
import type { State } from '../../src/exhaustive/level.ts';
import { SmallCluster, type SmallClusterOptions } from '../../src/exhaustive/small-cluster.ts';
import { UpToRenaming } from '../../src/exhaustive/up-to-renaming.ts';
import { mutants } from '../mutants.ts';

const small: SmallClusterOptions = { nodes: 3, termMax: 2, proposalsMax: 3, passesMax: 4, isLed: false };

/** The states within a depth, as text. */
function reached(system: System, depthMax: number): Set<string> {
  const met = new Map([[String(system.initial), system.initial]]);
  let frontier = [system.initial];
  for (let depth = 0; depth < depthMax; depth++) {
    const next = frontier.flatMap((state) => system.transitions(state).map((transition) => system.take(state, transition)));
    frontier = next.filter((state) => !met.has(String(state)) && met.set(String(state), state));
  }
  return new Set(met.keys());
}

const stateOf = (text: string): State => text.split(',').map(Number);

describe('three cores', () => {
  for (const [name, isLed, depthMax, statesMin] of [
    ['from nothing', false, 8, 3_000],
    ['from a leader', true, 6, 2_000],
  ] as const) {
    it(`keep their rules in every order of messages and passing time, ${name} to depth ${depthMax}`, () => {
      const { failure, states } = explore(new UpToRenaming(new SmallCluster({ ...small, isLed })), { depthMax });
      expect(failure).to.equal(undefined);
      expect(states).to.be.at.least(statesMin);
    });
  }

  for (const [name, isLed, depth] of [
    ['from nothing', false, 6],
    ['from a leader', true, 4],
  ] as const) {
    it(`reach the same states under any names, ${name}`, () => {
      const cluster = new SmallCluster({ ...small, isLed });
      const upToNames = new UpToRenaming(cluster);
      const closed = (states: Set<string>) =>
        new Set([...states].flatMap((each) => upToNames.renamings(stateOf(each)).map(String)));
      const [own, least] = [reached(cluster, depth), reached(upToNames, depth)];
      expect(least.size).to.be.below((isLed ? 0.6 : 0.25) * own.size);
      expect([...closed(least)].sort()).to.deep.equal([...closed(own)].sort());
      if (!isLed) expect(closed(own).size).to.equal(own.size);
    });

    it(`reach the same number of states in any order, and fingerprints count them all, ${name}`, () => {
      const cluster = new SmallCluster({ ...small, isLed });
      const backwards = {
        initial: cluster.initial,
        transitions: (state: State) => cluster.transitions(state).toReversed(),
        take: cluster.take.bind(cluster),
      };
      const { states } = explore(backwards, { depthMax: depth });
      expect(states).to.equal(reached(new SmallCluster({ ...small, isLed }), depth).size);
    });
  }

  it('are found to commit too early if a follower’s commit index exceeds the entries that it was shown', async () => {
    const mutant = mutants.find((each) => each.name === "a heartbeat sends a commit index above the peer's match");
    if (mutant === undefined) throw new Error('no such fault');
    const { folder, packages } = copyWith(mutant);
    const load = (file: string) => import(pathToFileURL(join(packages, 'raft-sim/src/exhaustive', file)).href);
    const { SmallCluster: Faulty }: { SmallCluster: typeof SmallCluster } = await load('small-cluster.ts');
    rmSync(folder, { recursive: true });
    const cluster = new Faulty({ ...small, isLed: true });
    const upToNames = new UpToRenaming(cluster);
    const { failure } = explore(upToNames, { depthMax: 6 });
    expect(failure?.message).to.match(/^The log ends at entry \d+ but entry \d+ was acknowledged/);
    const transitions = upToNames.inOneName(failure?.choices ?? []);
    const before = transitions.slice(0, -1).reduce((state, transition) => cluster.take(state, transition), cluster.initial);
    expect(() => cluster.take(before, transitions.at(-1) ?? 0)).to.throw(
      /^The log ends at entry \d+ but entry \d+ was acknowledged/,
    );
    expect(transitions.map((transition) => cluster.describe(transition)).at(-1)).to.match(/^Heartbeat from 1 to [23], term 1: /);
  });
});
