/** Runs tasks one after the other, in order of arrival, and refuses a task when too many are running or waiting. */
export class SerialQueue {
  readonly #max: number;
  readonly #full: () => Error;
  #last: Promise<unknown> = Promise.resolve();
  #size = 0;

  /**
   * @param max - tasks that run or wait
   * @param full - makes the error for a task beyond `max`
   */
  constructor(max: number, full: () => Error) {
    this.#max = max;
    this.#full = full;
  }

  /** Returns what `task` returns and throws what it throws, or the error of a full queue. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#size >= this.#max) throw this.#full();
    this.#size += 1;
    const mine = this.#last.then(task).finally(() => {
      this.#size -= 1;
    });
    this.#last = mine.catch(() => undefined);
    return mine;
  }
}
