import type { ServerResponse } from 'node:http';
import { FairQueue, type Taken } from '@transitd/event-loop';
import { overloaded, RequestError } from '../reply/request-error.ts';
import type { CommonAmount } from './common-amount.ts';

export interface WaitingOptions<Wanted> {
  /** Maximum number of queued requests; further ones are refused. */
  readonly waitingMax: number;
  /** Maximum time in the queue, in milliseconds. */
  readonly waitMsMax: number;
  /** What all threads share of the limit. */
  readonly common: CommonAmount | undefined;
  /** Takes what a request waits for, if it is free. */
  readonly tryTake: (caller: string, wanted: Wanted) => Taken;
}

interface Waiting<Wanted> {
  readonly wanted: Wanted;
  readonly begin: () => void;
  readonly refuse: () => void;
}

/** The requests that wait for a limit, in a queue that is fair between callers. */
export class WaitingRequests<Wanted> {
  readonly #options: WaitingOptions<Wanted>;
  readonly #queue: FairQueue<Waiting<Wanted>>;
  #refused = 0;

  constructor(options: WaitingOptions<Wanted>) {
    this.#options = options;
    this.#queue = new FairQueue(options.waitingMax);
  }

  get size(): number {
    return this.#queue.size;
  }

  /** Since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** Resolves when the request has taken what it wants. @throws RequestError `overloaded`, `request_aborted` */
  add(res: ServerResponse, caller: string, wanted: Wanted): Promise<void> {
    if (res.closed || res.destroyed) return Promise.reject(gone()); // no further `close` event will come
    return new Promise((resolve, reject) => {
      const finish = (then: () => void): void => {
        clearTimeout(deadline);
        res.off('close', onGone);
        this.#queue.delete(caller, waiting);
        then();
      };
      const waiting: Waiting<Wanted> = {
        wanted,
        begin: () => finish(resolve),
        refuse: () => finish(() => reject(this.refusal())),
      };
      const onGone = (): void => finish(() => reject(gone()));
      const deadline = setTimeout(waiting.refuse, this.#options.waitMsMax);
      res.once('close', onGone);
      this.#queue.add(caller, waiting)?.refuse();
      this.#admitWhenFreed();
    });
  }

  /** Begins the requests whose turn it is, as long as something is free. */
  admit(): void {
    const { tryTake } = this.#options;
    for (;;) {
      const next = this.#queue.take((caller, { wanted }) => tryTake(caller, wanted));
      if (next === undefined) return;
      next.begin();
    }
  }

  /** Counts a refused request, and returns its error. */
  refusal(): RequestError {
    this.#refused += 1;
    return overloaded();
  }

  /** Admits requests now, and when another thread gives something back. */
  #admitWhenFreed(): void {
    if (this.#queue.size > 0) this.#options.common?.whenFreed(() => this.#admitWhenFreed());
    this.admit();
  }
}

const gone = (): RequestError => new RequestError('request_aborted', 'the caller went away');
