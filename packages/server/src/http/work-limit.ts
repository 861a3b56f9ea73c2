import type { ServerResponse } from 'node:http';
import { overloaded, RequestError } from './error-answer.ts';

export interface WorkLimitOptions {
  readonly atOnceMax: number;
  /** In the line behind those; more are refused. */
  readonly waitingMax: number;
  /** How long one waits at most. */
  readonly waitMsMax?: number;
}

/**
 * Requests at work at a time, and in a line behind them those whose turn comes, the oldest first. A place is taken when all of the
 * request is here and given back before its answer is sent: a slow caller holds none.
 */
export class WorkLimit {
  readonly #options: Required<WorkLimitOptions>;
  #atWork = 0;
  #refused = 0;
  readonly #line = new Set<() => void>();

  constructor(options: WorkLimitOptions) {
    this.#options = { waitMsMax: 5_000, ...options };
  }

  get atWork(): number {
    return this.#atWork;
  }

  get waiting(): number {
    return this.#line.size;
  }

  /** Since the start. */
  get refused(): number {
    return this.#refused;
  }

  /**
   * Takes a place, which `leave` gives back: at once, for the price of a comparison, or when the promise resolves.
   * @throws RequestError `overloaded`; the promise also `request_aborted`
   */
  enter(res: ServerResponse): Promise<void> | undefined {
    if (this.#atWork < this.#options.atOnceMax) {
      this.#atWork += 1;
      return undefined;
    }
    if (this.#line.size >= this.#options.waitingMax) throw this.#refusal();
    return this.#turn(res);
  }

  leave(): void {
    const [next] = this.#line.size === 0 ? [] : this.#line;
    if (next === undefined) this.#atWork -= 1;
    else next(); // the place passes on
  }

  #turn(res: ServerResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (then: () => void): void => {
        clearTimeout(deadline);
        res.off('close', onGone);
        this.#line.delete(onTurn);
        then();
      };
      const onTurn = (): void => settle(resolve);
      const onGone = (): void => settle(() => reject(new RequestError('request_aborted', 'the caller went away')));
      const deadline = setTimeout(() => settle(() => reject(this.#refusal())), this.#options.waitMsMax);
      res.once('close', onGone);
      this.#line.add(onTurn);
    });
  }

  #refusal(): RequestError {
    this.#refused += 1;
    return overloaded();
  }
}
