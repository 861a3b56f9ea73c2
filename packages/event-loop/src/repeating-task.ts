/** A task that runs at intervals from `start` until `stop`. */
export class RepeatingTask {
  readonly #intervalMs: number;
  readonly #task: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(intervalMs: number, task: () => void) {
    this.#intervalMs = intervalMs;
    this.#task = task;
  }

  get isStarted(): boolean {
    return this.#timer !== undefined;
  }

  /** The task runs for the first time after one interval. Does nothing if it was started already. */
  start(): void {
    this.#timer ??= setInterval(this.#task, this.#intervalMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
