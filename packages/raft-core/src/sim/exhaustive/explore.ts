import { Fingerprints } from './fingerprints.ts';
import { Column, Level } from './level.ts';

/** Whole numbers below 2^16, one at least and fewer than 2^16 of them; two states are equal where the same can happen from both. */
export type State = readonly number[];

/** States and the ways to go on from each. */
export interface System {
  readonly begin: State;
  /** Ways by number, below 2^32, in a fixed order. */
  ways(state: State): readonly number[];
  /** @throws whatever rule that broke */
  go(state: State, way: number): State;
}

export interface Exploration {
  /** Different states, the first included. */
  readonly states: number;
  /** Ways gone from them. */
  readonly transitions: number;
  /** How far every order was played: the depth asked for, or less if there were too many states. */
  readonly depth: number;
  /** New states by depth. */
  readonly byDepth: readonly number[];
  /** The ways that lead to it. */
  readonly failure?: { readonly choices: readonly number[]; readonly message: string };
}

/** How each state of a level was first met: from which one of the level before, in order, and by which way. */
interface Origins {
  readonly from: Column;
  readonly way: Column;
}

/**
 * Goes every way from every state up to a depth, breadth first, so that a failure has the fewest choices. States that were met before,
 * as their fingerprints tell, are not gone on from. Of the last depth nothing but the fingerprints is kept.
 */
export function explore(
  system: System,
  { depthMax, statesMax = Number.POSITIVE_INFINITY }: { readonly depthMax: number; readonly statesMax?: number },
): Exploration {
  const met = new Fingerprints();
  met.add(system.begin);
  const origins: Origins[] = [];
  const byDepth = [1];
  let transitions = 0;
  let frontier = new Level();
  frontier.push(system.begin);
  for (let depth = 0; depth < depthMax && frontier.size > 0; depth++) {
    const before = met.size;
    const next = new Level();
    const origin = { from: new Column(), way: new Column() };
    let position = 0;
    for (const state of frontier.drain()) {
      for (const way of system.ways(state)) {
        transitions += 1;
        let reached: State;
        try {
          reached = system.go(state, way);
        } catch (error) {
          if (error instanceof RangeError) throw error; // of this program's tables, no rule
          const message = error instanceof Error ? error.message : String(error);
          const choices = [...choicesTo(origins, position), way];
          return { states: met.size, transitions, depth, byDepth, failure: { choices, message } };
        }
        if (!met.add(reached) || depth + 1 === depthMax) continue;
        next.push(reached);
        origin.from.push(position);
        origin.way.push(way);
      }
      position += 1;
      if (met.size > statesMax) return { states: met.size, transitions, depth, byDepth };
    }
    byDepth.push(met.size - before);
    origins.push(origin);
    frontier = next;
  }
  return { states: met.size, transitions, depth: depthMax, byDepth };
}

function choicesTo(origins: readonly Origins[], position: number): number[] {
  const choices: number[] = [];
  let at = position;
  for (const { from, way } of origins.toReversed()) {
    choices.unshift(way.at(at));
    at = from.at(at);
  }
  return choices;
}
