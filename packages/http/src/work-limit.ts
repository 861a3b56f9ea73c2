import type { ServerResponse } from 'node:http';
import { FairQueue } from '@transitd/event-loop';
import { overloaded, RequestError } from './reply/request-error.ts';

export interface WorkLimitOptions {
  readonly atOnceMax: number;
  /** Maximum number of concurrent requests of one caller; `atOnceMax` by default. */
  readonly perCallerMax?: number;
  /** Maximum number of queued requests; further ones are refused. */
  readonly waitingMax: number;
  /** Maximum time in the queue, in milliseconds. */
  readonly waitMsMax?: number;
}

interface Waiting {
  readonly begin: () => void;
  readonly refuse: () => void;
}

/**
 * Limits concurrent requests and queues the rest, fairly between callers. A request enters once its body is complete and leaves before its
 * response is sent, so a slow caller occupies no place.
 */
export class WorkLimit {
  readonly #atOnceMax: number;
  readonly #perCallerMax: number;
  readonly #waitMsMax: number;
  readonly #queue: FairQueue<Waiting>;
  /** Number of concurrent requests by caller; counted only if `perCallerMax` is below `atOnceMax`. */
  readonly #of = new Map<string, number>();
  #atWork = 0;
  #refused = 0;

  constructor({ atOnceMax, perCallerMax = atOnceMax, waitingMax, waitMsMax = 5_000 }: WorkLimitOptions) {
    this.#atOnceMax = atOnceMax;
    this.#perCallerMax = perCallerMax;
    this.#waitMsMax = waitMsMax;
    this.#queue = new FairQueue(waitingMax);
  }

  get atWork(): number {
    return this.#atWork;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Since the start. */
  get refused(): number {
    return this.#refused;
  }

  /**
   * Takes a place until `leave` is called. Returns undefined if a place was free; otherwise a promise that resolves once the request has a
   * place.
   * @param caller - key of the caller whose requests are counted together; by default all requests have the same key
   * @throws RequestError `overloaded`, `request_aborted`; only the promise rejects with them
   */
  enter(res: ServerResponse, caller = ''): Promise<void> | undefined {
    return this.tryEnter(caller) ? undefined : this.#enqueue(res, caller);
  }

  /** Takes a place until `leave` is called, if one is free. Returns whether it did; otherwise the request is neither queued nor counted. */
  tryEnter(caller = ''): boolean {
    if (this.#atWork >= this.#atOnceMax || !this.#mayBegin(caller)) return false;
    this.#begin(caller);
    return true;
  }

  /** @param caller - as passed to `enter` */
  leave(caller = ''): void {
    this.#atWork -= 1;
    if (this.#isCapped) {
      const left = (this.#of.get(caller) ?? 0) - 1;
      if (left > 0) this.#of.set(caller, left);
      else this.#of.delete(caller);
    }
    if (this.#queue.size === 0) return;
    this.#queue.take((next) => this.#mayBegin(next))?.begin();
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

  #enqueue(res: ServerResponse, caller: string): Promise<void> {
    if (res.closed || res.destroyed) return Promise.reject(gone()); // no further `close` event will come
    return new Promise((resolve, reject) => {
      const finish = (then: () => void): void => {
        clearTimeout(deadline);
        res.off('close', onGone);
        this.#queue.delete(caller, waiting);
        then();
      };
      const waiting: Waiting = {
        begin: () => {
          this.#begin(caller);
          finish(resolve);
        },
        refuse: () => finish(() => reject(this.#refusal())),
      };
      const onGone = (): void => finish(() => reject(gone()));
      const deadline = setTimeout(waiting.refuse, this.#waitMsMax);
      res.once('close', onGone);
      this.#queue.add(caller, waiting)?.refuse();
    });
  }

  #refusal(): RequestError {
    this.#refused += 1;
    return overloaded();
  }
}

const gone = (): RequestError => new RequestError('request_aborted', 'the caller went away');
