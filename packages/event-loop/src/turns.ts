/** Time for new requests in one turn of the event loop, in milliseconds. Further requests wait for a later turn. */
const turnMs = 5;

/** A clock in milliseconds, and a function that runs a task in the next turn of the event loop. */
export interface TurnsParts {
  readonly now: () => number;
  readonly afterTurn: (task: () => void) => void;
}

/**
 * Shares the event loop between requests by time. Requests begin at once while there is time left in the current turn; later ones wait in
 * order for the next turns. Between two turns timers fire and sockets are read, so health checks, heartbeats and Raft never wait for more
 * than one turn and one request, however many requests there are.
 */
export class Turns {
  readonly #parts: TurnsParts;
  readonly #waiting: (() => void)[] = [];
  /** Start of the first request of this turn. */
  #begunMs: number | undefined;

  constructor(parts: TurnsParts = { now: () => performance.now(), afterTurn: (task) => void setImmediate(task) }) {
    this.#parts = parts;
  }

  /** Number of waiting requests. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Returns undefined if the request may begin now. Otherwise it may begin when the promise resolves. Costs one read of the clock. */
  next(): Promise<void> | undefined {
    if (this.#waiting.length === 0) {
      if (this.#begunMs === undefined) {
        this.#begin();
        return undefined;
      }
      if (this.#parts.now() - this.#begunMs < turnMs) return undefined;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #begin(): void {
    this.#begunMs = this.#parts.now();
    this.#parts.afterTurn(this.#onNextTurn);
  }

  readonly #onNextTurn = (): void => {
    this.#begunMs = undefined;
    if (this.#waiting.length === 0) return;
    this.#begin();
    this.#beginOne();
  };

  readonly #beginOne = (): void => {
    if (this.#begunMs === undefined || this.#parts.now() - this.#begunMs >= turnMs) return;
    this.#waiting.shift()?.();
    // A tick scheduled in a microtask runs after all microtasks. By then the request has done its work of this turn.
    if (this.#waiting.length > 0) queueMicrotask(() => process.nextTick(this.#beginOne));
  };
}

/** The turns of this process, which has one event loop. */
export const turns = new Turns();
