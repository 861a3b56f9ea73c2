/** Requests that have had their slice of time, in order. */
const line: (() => void)[] = [];

/** Resolves when everything else that the event loop holds has had its turn; of all that wait here, one goes on in each turn of the loop. */
const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    if (line.push(resolve) === 1) setImmediate(goOn);
  });

function goOn(): void {
  line.shift()?.();
  if (line.length > 0) setImmediate(goOn);
}

/** Time after which others get their turn. */
const sliceMs = 4;

/**
 * Divides long work by time. Between its steps, which are short, the work asks `isOver` and then waits for `next`: so no request holds the event
 * loop for much longer than a slice, however much it asks for.
 */
export class TimeSlice {
  #endsMs = performance.now() + sliceMs;

  get isOver(): boolean {
    return performance.now() >= this.#endsMs;
  }

  /** Resolves at the beginning of the next slice. */
  async next(): Promise<void> {
    await nextTurn();
    this.#endsMs = performance.now() + sliceMs;
  }
}
