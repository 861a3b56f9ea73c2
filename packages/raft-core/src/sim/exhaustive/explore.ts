/** A state that a sequence of choices leads to. */
export interface Explored {
  /** How many ways there are to go on; they are numbered from 0, in a fixed order. */
  readonly choices: number;
  /** Goes on in that way. @throws whatever rule that broke */
  choose(choice: number): void;
  /** Equal for states from which the same can happen. */
  readonly print: string;
}

export interface Exploration {
  /** Different states, the first included. */
  readonly states: number;
  /** Choices made in them. */
  readonly transitions: number;
  /** How far every order was played: the depth asked for, or less if there were too many states. */
  readonly depth: number;
  /** New states by depth. */
  readonly byDepth: readonly number[];
  readonly failure?: { readonly choices: readonly number[]; readonly message: string };
}

/**
 * Plays every order of choices up to a depth, breadth first, so that a failure has the fewest choices. States that were met before
 * are not gone on from (state hashing). A state cannot be copied, so each is reached by playing its choices again.
 */
export function explore(
  begin: () => Explored,
  { depthMax, statesMax = Number.POSITIVE_INFINITY }: { readonly depthMax: number; readonly statesMax?: number },
): Exploration {
  const met = new Set([begin().print]);
  const byDepth = [1];
  let transitions = 0;
  let frontier: readonly Uint8Array[] = [new Uint8Array(0)];
  for (let depth = 0; depth < depthMax && frontier.length > 0; depth++) {
    const next: Uint8Array[] = [];
    for (const path of frontier) {
      const { choices } = replayed(begin, path);
      for (let choice = 0; choice < choices; choice++) {
        const longer = Uint8Array.of(...path, choice);
        transitions += 1;
        const state = begin();
        try {
          for (const each of longer) state.choose(each);
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error);
          return { states: met.size, transitions, depth, byDepth, failure: { choices: [...longer], message } };
        }
        const { print } = state;
        if (met.has(print)) continue;
        met.add(print);
        next.push(longer);
      }
      if (met.size > statesMax) return { states: met.size, transitions, depth, byDepth };
    }
    byDepth.push(next.length);
    frontier = next;
  }
  return { states: met.size, transitions, depth: depthMax, byDepth };
}

function replayed(begin: () => Explored, path: Uint8Array): Explored {
  const state = begin();
  for (const choice of path) state.choose(choice);
  return state;
}
