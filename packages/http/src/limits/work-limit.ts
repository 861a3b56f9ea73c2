import type { ServerResponse } from 'node:http';
import type { Taken } from '@transitd/event-loop';
import type { CommonAmount } from './common-amount.ts';
import { CallerAmounts, TakenAmount } from './thread-limit.ts';
import { WaitingRequests } from './waiting-requests.ts';

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

/**
 * Limits concurrent requests and queues the rest, fairly between callers. A request enters once its body is complete and leaves before its
 * response is sent, so a slow caller occupies no place.
 */
export class WorkLimit {
  readonly #places: TakenAmount;
  /** Places by caller; undefined if one caller may take all. */
  readonly #of: CallerAmounts | undefined;
  readonly #waiting: WaitingRequests<undefined>;

  constructor({ atOnceMax, perCallerMax = atOnceMax, common, waitingMax, waitMsMax = 5_000 }: WorkLimitOptions) {
    const limit = { own: atOnceMax, ownPerCaller: perCallerMax, ...(common && { common }) };
    this.#places = new TakenAmount(limit);
    this.#of = perCallerMax < atOnceMax || common !== undefined ? new CallerAmounts(limit) : undefined;
    this.#waiting = new WaitingRequests({ waitingMax, waitMsMax, common, tryTake: (caller) => this.#tryTake(caller) });
  }

  get atWork(): number {
    return this.#places.taken;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Since the start. */
  get refused(): number {
    return this.#waiting.refused;
  }

  /**
   * Takes a place until `leave` is called. Returns undefined if a place was free; otherwise a promise that resolves once the request has a
   * place.
   * @param caller - key of the caller whose requests are counted together; by default all requests have the same key
   * @throws RequestError `overloaded`, `request_aborted`; only the promise rejects with them
   */
  enter(res: ServerResponse, caller = ''): Promise<void> | undefined {
    return this.tryEnter(caller) ? undefined : this.#waiting.add(res, caller, undefined);
  }

  /** Takes a place until `leave` is called, if one is free. Returns whether it did; otherwise the request is neither queued nor counted. */
  tryEnter(caller = ''): boolean {
    return this.#tryTake(caller) === 'taken';
  }

  /** @param caller - as passed to `enter` */
  leave(caller = ''): void {
    this.#places.giveBack(1);
    this.#of?.giveBack(caller, 1);
    if (this.#waiting.size > 0) this.#waiting.admit();
  }

  #tryTake(caller: string): Taken {
    if (!this.#places.fits(1)) return 'full';
    if (this.#of?.tryTake(caller, 1) === false) return 'beyond the share';
    if (this.#places.tryTake(1)) return 'taken';
    this.#of?.giveBack(caller, 1); // another thread took the last place at the same time
    return 'full';
  }
}
