import type { ServerResponse } from 'node:http';
import { FairQueue } from '@transitd/event-loop';
import { overloaded, RequestError } from './reply/request-error.ts';

export interface WorkLimitOptions {
  readonly atOnceMax: number;
  /** At work at a time for one caller; as many as there are places unless given. */
  readonly perCallerMax?: number;
  /** In the line behind those; more are refused. */
  readonly waitingMax: number;
  /** How long one waits at most, in milliseconds. */
  readonly waitMsMax?: number;
}

interface Waiting {
  readonly begin: () => void;
  readonly refuse: () => void;
}

/**
 * Requests at work at a time, and a line behind them in which callers take turns. A place is taken when all of the request is here and
 * given back before its answer is sent: a slow caller holds none.
 */
export class WorkLimit {
  readonly #atOnceMax: number;
  readonly #perCallerMax: number;
  readonly #waitMsMax: number;
  readonly #line: FairQueue<Waiting>;
  /** Requests at work by caller, where one caller may not have all places. */
  readonly #of = new Map<string, number>();
  #atWork = 0;
  #refused = 0;

  constructor({ atOnceMax, perCallerMax = atOnceMax, waitingMax, waitMsMax = 5_000 }: WorkLimitOptions) {
    this.#atOnceMax = atOnceMax;
    this.#perCallerMax = perCallerMax;
    this.#waitMsMax = waitMsMax;
    this.#line = new FairQueue(waitingMax);
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
   * @param caller - whose requests count together; all are one caller's unless given
   * @throws RequestError `overloaded`, `request_aborted`, by the promise
   */
  enter(res: ServerResponse, caller = ''): Promise<void> | undefined {
    if (this.#atWork >= this.#atOnceMax || !this.#mayBegin(caller)) return this.#turn(res, caller);
    this.#begin(caller);
    return undefined;
  }

  /** @param caller - as it was given to `enter` */
  leave(caller = ''): void {
    this.#atWork -= 1;
    if (this.#isCapped) {
      const left = (this.#of.get(caller) ?? 0) - 1;
      if (left > 0) this.#of.set(caller, left);
      else this.#of.delete(caller);
    }
    if (this.#line.size === 0) return;
    this.#line.take((next) => this.#mayBegin(next))?.begin();
  }

  get #isCapped(): boolean {
    return this.#perCallerMax < this.#atOnceMax;
  }

  #mayBegin(caller: string): boolean {
    return !this.#isCapped || (this.#of.get(caller) ?? 0) < this.#perCallerMax;
  }

  #begin(caller: string): void {
    this.#atWork += 1;
    if (this.#isCapped) this.#of.set(caller, (this.#of.get(caller) ?? 0) + 1);
  }

  #turn(res: ServerResponse, caller: string): Promise<void> {
    if (res.closed || res.destroyed) return Promise.reject(gone()); // it says so no second time
    return new Promise((resolve, reject) => {
      const settle = (then: () => void): void => {
        clearTimeout(deadline);
        res.off('close', onGone);
        this.#line.delete(caller, waiting);
        then();
      };
      const waiting: Waiting = {
        begin: () => {
          this.#begin(caller);
          settle(resolve);
        },
        refuse: () => settle(() => reject(this.#refusal())),
      };
      const onGone = (): void => settle(() => reject(gone()));
      const deadline = setTimeout(waiting.refuse, this.#waitMsMax);
      res.once('close', onGone);
      this.#line.add(caller, waiting)?.refuse();
    });
  }

  #refusal(): RequestError {
    this.#refused += 1;
    return overloaded();
  }
}

const gone = (): RequestError => new RequestError('request_aborted', 'the caller went away');
