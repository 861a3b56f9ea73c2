/**
 * Work that waits for its turn, oldest first: one waiting caller continues in each turn of the event loop, so however many requests do long
 * work, a heartbeat never waits for more than one piece of it.
 */
export class TurnQueue {
  readonly #waiting: (() => void)[] = [];

  /** Resolves in a later turn of the event loop, after timers and sockets have been served. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(this.#continueOne);
    });
  }

  readonly #continueOne = (): void => {
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) setImmediate(this.#continueOne);
  };
}

/** The queue of cryptography, batches and large bodies. */
export const workTurns = new TurnQueue();

/**
 * The queue of authentication and policies. It is separate, because a request waits in it before any limit on its work applies: signatures
 * of one caller must not delay the authentication of others.
 */
export const accessTurns = new TurnQueue();

/** Resolves at the next turn of the work queue. */
export const nextTurn = (): Promise<void> => workTurns.next();

let ending: Promise<void> | undefined;

/** Resolves at the end of this turn of the event loop, once all that sockets have received so far is parsed. All callers share it. */
export function turnEnd(): Promise<void> {
  ending ??= new Promise((resolve) => {
    setImmediate(() => {
      ending = undefined;
      resolve();
    });
  });
  return ending;
}
