/** How long requests may be worked on in one turn of the event loop until the next one has to wait for another turn, in milliseconds. */
const turnMs = 5;

/** A clock in milliseconds, and the end of this turn of the event loop. */
export interface TurnsParts {
  readonly now: () => number;
  readonly afterTurn: (task: () => void) => void;
}

/**
 * Shares the event loop by time: requests begin at once while there is time left in this turn, and wait in line for the next turns
 * after that. Between two turns timers fire and sockets are read, so that health, heartbeats and Raft are never behind more than one
 * turn and one request, however many requests there are.
 */
export class Turns {
  readonly #parts: TurnsParts;
  readonly #line: (() => void)[] = [];
  /** When the first request of this turn began. */
  #begunMs: number | undefined;

  constructor(parts: TurnsParts = { now: () => performance.now(), afterTurn: (task) => void setImmediate(task) }) {
    this.#parts = parts;
  }

  /** In line. */
  get waiting(): number {
    return this.#line.length;
  }

  /** Undefined when work may begin now; else it may begin when the promise resolves. Costs a look at the clock. */
  next(): Promise<void> | undefined {
    if (this.#line.length === 0) {
      if (this.#begunMs === undefined) {
        this.#begin();
        return undefined;
      }
      if (this.#parts.now() - this.#begunMs < turnMs) return undefined;
    }
    return new Promise((resolve) => this.#line.push(resolve));
  }

  #begin(): void {
    this.#begunMs = this.#parts.now();
    this.#parts.afterTurn(this.#onNextTurn);
  }

  readonly #onNextTurn = (): void => {
    this.#begunMs = undefined;
    if (this.#line.length === 0) return;
    this.#begin();
    this.#letOneIn();
  };

  readonly #letOneIn = (): void => {
    if (this.#begunMs === undefined || this.#parts.now() - this.#begunMs >= turnMs) return;
    this.#line.shift()?.();
    // A tick that is set from a microtask comes after all microtasks: by then the request has done what it can do in this turn.
    if (this.#line.length > 0) queueMicrotask(() => process.nextTick(this.#letOneIn));
  };
}

/** Of this process, which has one event loop. */
export const turns = new Turns();
