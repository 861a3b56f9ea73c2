import type { ServerResponse } from 'node:http';
import { FairQueue } from '@transitd/event-loop';
import { overloaded, RequestError } from '../reply/request-error.ts';
import type { CommonAmount } from './common-amount.ts';
import { CallerAmounts, TakenAmount } from './thread-limit.ts';

export interface WorkLimitOptions {
  readonly atOnceMax: number;
  /** Maximum number of concurrent requests of one caller; `atOnceMax` by default. */
  readonly perCallerMax?: number;
  /** Places, beyond these, that all threads share. */
  readonly common?: CommonAmount | undefined;
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
  readonly #places: TakenAmount;
  /** Places by caller; undefined if one caller may take all. */
  readonly #of: CallerAmounts | undefined;
  readonly #common: CommonAmount | undefined;
  readonly #waitMsMax: number;
  readonly #queue: FairQueue<Waiting>;
  #refused = 0;

  constructor({ atOnceMax, perCallerMax = atOnceMax, common, waitingMax, waitMsMax = 5_000 }: WorkLimitOptions) {
    const limit = { own: atOnceMax, ownPerCaller: perCallerMax, ...(common && { common }) };
    this.#places = new TakenAmount(limit);
    this.#of = perCallerMax < atOnceMax || common !== undefined ? new CallerAmounts(limit) : undefined;
    this.#common = common;
    this.#waitMsMax = waitMsMax;
    this.#queue = new FairQueue(waitingMax);
  }

  get atWork(): number {
    return this.#places.taken;
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
    if (!this.#places.fits(1) || this.#of?.tryTake(caller, 1) === false) return false;
    if (this.#places.tryTake(1)) return true;
    this.#of?.giveBack(caller, 1);
    return false;
  }

  /** @param caller - as passed to `enter` */
  leave(caller = ''): void {
    this.#places.giveBack(1);
    this.#of?.giveBack(caller, 1);
    if (this.#queue.size > 0) this.#admit();
  }

  /** Gives the free places to queued requests. */
  #admit(): void {
    while (this.#queue.size > 0) {
      const next = this.#queue.take((caller) => this.tryEnter(caller));
      if (next === undefined) return;
      next.begin();
    }
  }

  /** Admits queued requests now, and when another thread gives back a place. */
  #admitWhenFreed(): void {
    if (this.#queue.size > 0) this.#common?.whenFreed(() => this.#admitWhenFreed());
    this.#admit();
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
        begin: () => finish(resolve),
        refuse: () => finish(() => reject(this.#refusal())),
      };
      const onGone = (): void => finish(() => reject(gone()));
      const deadline = setTimeout(waiting.refuse, this.#waitMsMax);
      res.once('close', onGone);
      this.#queue.add(caller, waiting)?.refuse();
      if (this.#common !== undefined) this.#admitWhenFreed();
    });
  }

  #refusal(): RequestError {
    this.#refused += 1;
    return overloaded();
  }
}

const gone = (): RequestError => new RequestError('request_aborted', 'the caller went away');
