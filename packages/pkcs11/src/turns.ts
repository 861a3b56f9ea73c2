/** Positions: 1 while a thread has its turn; the number of logouts and finalizations so far. */
const [taken, disturbances] = [0, 1];

/** The state of each library of this process, by path. */
const states = new Map<string, SharedArrayBuffer>();

/** Returns the state that the threads of one library share. @param path - without symbolic links */
export function turnsOf(path: string): SharedArrayBuffer {
  const state = states.get(path) ?? new SharedArrayBuffer(8);
  states.set(path, state);
  return state;
}

/**
 * Lets the threads of one library take turns, such as that of the seal and that of the managed keys. A logout and `C_Finalize` apply to the
 * whole process: in the middle of another thread's call, its key would seem to be missing from the token.
 */
export class Turns {
  readonly #state: Int32Array;
  #seen = 0;

  constructor(state: SharedArrayBuffer) {
    this.#state = new Int32Array(state);
  }

  /** Blocks until no other thread has its turn. Returns whether another thread has ended the logins since the last turn. */
  take(): boolean {
    while (Atomics.compareExchange(this.#state, taken, 0, 1) !== 0) Atomics.wait(this.#state, taken, 1);
    return Atomics.load(this.#state, disturbances) !== this.#seen;
  }

  /** Ends the turn. @param disturbed - whether it logged out or finalized the library */
  end(disturbed: boolean): void {
    if (disturbed) Atomics.add(this.#state, disturbances, 1);
    this.#seen = Atomics.load(this.#state, disturbances);
    Atomics.store(this.#state, taken, 0);
    Atomics.notify(this.#state, taken, 1);
  }
}
