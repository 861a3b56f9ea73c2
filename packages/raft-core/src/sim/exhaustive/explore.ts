/** States, written so that two are equal where the same can happen from both, and the ways to go on from each. */
export interface System {
  readonly begin: string;
  /** In a fixed order. Going one of them gives the next state. @throws whatever rule that broke */
  ways(state: string): readonly (() => string)[];
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
  /** The ways that lead to it, by their numbers. */
  readonly failure?: { readonly choices: readonly number[]; readonly message: string };
}

/**
 * Goes every way from every state up to a depth, breadth first, so that a failure has the fewest choices. States that were met before
 * are not gone on from.
 */
export function explore(
  system: System,
  { depthMax, statesMax = Number.POSITIVE_INFINITY }: { readonly depthMax: number; readonly statesMax?: number },
): Exploration {
  /** Each state, by the one that it was first met from. */
  const met = new Map([[system.begin, '']]);
  const byDepth = [1];
  let transitions = 0;
  let frontier = [system.begin];
  for (let depth = 0; depth < depthMax && frontier.length > 0; depth++) {
    const next: string[] = [];
    for (const state of frontier) {
      for (const [choice, way] of system.ways(state).entries()) {
        transitions += 1;
        let reached: string;
        try {
          reached = way();
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error);
          const choices = [...choicesTo(system, met, state), choice];
          return { states: met.size, transitions, depth, byDepth, failure: { choices, message } };
        }
        if (met.has(reached)) continue;
        met.set(reached, state);
        next.push(reached);
      }
      if (met.size > statesMax) return { states: met.size, transitions, depth, byDepth };
    }
    byDepth.push(next.length);
    frontier = next;
  }
  return { states: met.size, transitions, depth: depthMax, byDepth };
}

function choicesTo(system: System, met: ReadonlyMap<string, string>, state: string): number[] {
  const choices: number[] = [];
  for (let at = state; at !== system.begin; ) {
    const before = met.get(at) ?? '';
    choices.unshift(system.ways(before).findIndex((way) => way() === at));
    at = before;
  }
  return choices;
}
