/** Limits the number of concurrent tasks. Further tasks begin in order of arrival, each when an earlier one has ended. */
export class TaskLimit {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  /** @param atOnceMax - maximum number of concurrent tasks */
  constructor(atOnceMax: number) {
    this.#free = atOnceMax;
  }

  /** Number of tasks that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Returns what `task` returns, and throws what it throws. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next(); // the next task takes over this place
    }
  }
}
