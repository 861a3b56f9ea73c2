// Runs a few threads in every order of their steps. A thread is a generator: the code up to the next `yield` is one step.

/** Returns whether the thread can continue in this way. A thread that yields nothing can always continue, in one way. */
export type Alternatives = readonly (() => boolean)[];

/** Receives the index of the alternative that was chosen. */
export type Thread = Generator<Alternatives | undefined, void, number>;

export interface World {
  readonly threads: readonly Thread[];
  /** Returns everything that determines how the world continues: two worlds with the same text behave alike. */
  readonly state: () => string;
}

interface Choice {
  readonly thread: number;
  readonly alternative: number;
}

export interface Explored {
  readonly states: number;
  /** Runs in which every thread has ended. */
  readonly ends: number;
}

/**
 * Visits every state that some order of steps leads to.
 * @param start - makes the same world each time, because generators cannot be copied: a branch is entered by a replay of its choices
 * @throws what a step throws, or an error when no thread can continue and one has not ended
 */
export function explore(start: () => World): Explored {
  const seen = new Set<string>();
  const branches: (readonly Choice[])[] = [[]];
  let ends = 0;
  for (let branch = branches.pop(); branch !== undefined; branch = branches.pop()) {
    const run = new Run(start());
    for (const choice of branch) run.step(choice);
    const path = [...branch];
    for (;;) {
      const state = run.state();
      if (seen.has(state)) break;
      seen.add(state);
      const [first, ...others] = run.choices();
      if (first === undefined) {
        if (!run.hasEnded) throw new Error(`no thread can continue after ${JSON.stringify(path)}`);
        ends += 1;
        break;
      }
      for (const other of others) branches.push([...path, other]);
      run.step(first);
      path.push(first);
    }
  }
  return { states: seen.size, ends };
}

class Run {
  readonly #world: World;
  /** The alternatives of each thread; undefined once it has ended. */
  readonly #waits: (Alternatives | undefined)[];

  constructor(world: World) {
    this.#world = world;
    this.#waits = world.threads.map((thread) => waitOf(thread.next(0)));
  }

  get hasEnded(): boolean {
    return this.#waits.every((wait) => wait === undefined);
  }

  state(): string {
    return this.#world.state();
  }

  choices(): Choice[] {
    return this.#waits.flatMap((wait, thread) =>
      (wait ?? []).flatMap((isPossible, alternative) => (isPossible() ? [{ thread, alternative }] : [])),
    );
  }

  step({ thread, alternative }: Choice): void {
    const running = this.#world.threads[thread];
    if (running === undefined) throw new Error('no such thread');
    this.#waits[thread] = waitOf(running.next(alternative));
  }
}

const always: Alternatives = [() => true];
const waitOf = ({ done, value }: IteratorResult<Alternatives | undefined, void>): Alternatives | undefined =>
  done === true ? undefined : (value ?? always);
