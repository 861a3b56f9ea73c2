import { Fingerprints } from './fingerprints.ts';
import { Column, Level, type State } from './level.ts';

/** States and the transitions from each. */
export interface System {
  readonly initial: State;
  /** Transitions by number, below 2^32, in a fixed order. */
  transitions(state: State): readonly number[];
  /** @throws the violation of the rule that the transition broke */
  take(state: State, transition: number): State;
}

export interface Exploration {
  /** The number of different states, the first included. */
  readonly states: number;
  /** The number of transitions that were taken. */
  readonly transitions: number;
  /** The depth to which every order was played: the requested one, or less if there were too many states. */
  readonly depth: number;
  /** New states by depth. */
  readonly byDepth: readonly number[];
  /** `choices`: the transitions that lead to the failure. */
  readonly failure?: { readonly choices: readonly number[]; readonly message: string };
}

/** How each state of a level was first reached: from which state of the previous level, in order, and by which transition. */
interface Origins {
  readonly from: Column;
  readonly transition: Column;
}

/**
 * Takes every transition from every state up to a depth, breadth first, so that a failure has the fewest choices. A state whose fingerprint
 * is known is not explored again. Of the last depth, only the fingerprints are kept.
 */
export function explore(
  system: System,
  { depthMax, statesMax = Number.POSITIVE_INFINITY }: { readonly depthMax: number; readonly statesMax?: number },
): Exploration {
  const met = new Fingerprints();
  met.add(system.initial);
  const origins: Origins[] = [];
  const byDepth = [1];
  let transitions = 0;
  let frontier = new Level();
  frontier.push(system.initial);
  for (let depth = 0; depth < depthMax && frontier.size > 0; depth++) {
    const before = met.size;
    const next = new Level();
    const origin = { from: new Column(), transition: new Column() };
    let position = 0;
    for (const state of frontier.drain()) {
      for (const transition of system.transitions(state)) {
        transitions += 1;
        let reached: State;
        try {
          reached = system.take(state, transition);
        } catch (error) {
          if (error instanceof RangeError) throw error; // an error of this program's tables, not a violated rule
          const message = error instanceof Error ? error.message : String(error);
          const choices = [...choicesTo(origins, position), transition];
          return { states: met.size, transitions, depth, byDepth, failure: { choices, message } };
        }
        if (!met.add(reached) || depth + 1 === depthMax) continue;
        next.push(reached);
        origin.from.push(position);
        origin.transition.push(transition);
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
  for (const { from, transition } of origins.toReversed()) {
    choices.unshift(transition.at(at));
    at = from.at(at);
  }
  return choices;
}
