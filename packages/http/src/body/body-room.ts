import type { ServerResponse } from 'node:http';
import { FairQueue } from '@transitd/event-loop';
import { CallerAmounts, TakenAmount, type ThreadLimit } from '../limits/thread-limit.ts';
import { overloaded, RequestError } from '../reply/request-error.ts';

/** The authenticated caller to whose share a body counts. */
export interface BodyCaller {
  readonly tokenId: string;
  /** An IPv4 address, or the /64 network of an IPv6 address. */
  readonly address: string;
}

export interface BodyRoomOptions {
  /** In bytes; a token and an address are callers. A single body may exceed the part of its callers. */
  readonly limit: ThreadLimit;
  /** Maximum number of queued bodies; further ones are refused. */
  readonly waitingMax: number;
  /** Maximum time in the queue, in milliseconds. */
  readonly waitMsMax: number;
}

interface Waiting {
  readonly caller: BodyCaller;
  readonly bytes: number;
  readonly begin: () => void;
  readonly refuse: () => void;
}

/**
 * Reserves bytes for bodies and queues those that do not fit, fairly between addresses. A small body does not overtake a large body that
 * waits.
 */
export class BodyRoom {
  readonly #options: BodyRoomOptions;
  readonly #queue: FairQueue<Waiting>;
  readonly #bytes: TakenAmount;
  /** Reserved bytes by caller; the keys are `token …` and `address …`. */
  readonly #of: CallerAmounts;
  #refused = 0;

  constructor(options: BodyRoomOptions) {
    this.#options = options;
    this.#bytes = new TakenAmount(options.limit);
    this.#of = new CallerAmounts(options.limit);
    this.#queue = new FairQueue(options.waitingMax);
  }

  get bytesMax(): number {
    return this.#bytes.max;
  }

  get held(): number {
    return this.#bytes.taken;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Since the start. */
  get refused(): number {
    return this.#refused;
  }

  /**
   * Reserves bytes, either at once or when the returned promise resolves; the promise may reject.
   * @throws RequestError `overloaded`, `request_aborted`
   */
  reserve(res: ServerResponse, caller: BodyCaller, bytes: number): Promise<void> | undefined {
    return this.tryReserve(caller, bytes) ? undefined : this.#enqueue(res, caller, bytes);
  }

  /** Reserves bytes if they are free and no body waits. Returns whether it did. */
  tryReserve(caller: BodyCaller, bytes: number): boolean {
    return this.#queue.size === 0 && this.#tryTake(caller, bytes) === 'taken';
  }

  release(caller: BodyCaller, bytes: number): void {
    this.#bytes.giveBack(bytes);
    for (const key of keysOf(caller)) this.#of.giveBack(key, bytes);
    this.#admit();
  }

  #tryTake(caller: BodyCaller, bytes: number): 'taken' | 'beyond the share' | 'full' {
    const keys = keysOf(caller);
    if (!keys.every((key) => this.#of.hasNone(key) || this.#of.fits(key, bytes))) return 'beyond the share';
    if (!this.#bytes.tryTake(bytes)) return 'full';
    for (const key of keys) this.#of.take(key, bytes); // threads that look at once may each exceed the share by one body
    return 'taken';
  }

  /** Admits the queued bodies that fit now, address by address. */
  #admit(): void {
    let isFull = false;
    const may = (_address: string, { caller, bytes }: Waiting): boolean => {
      if (isFull) return false;
      const result = this.#tryTake(caller, bytes);
      isFull = result === 'full';
      return result === 'taken';
    };
    while (this.#queue.size > 0) {
      const next = this.#queue.take(may);
      if (next === undefined) return;
      next.begin();
    }
  }

  /** Admits queued bodies now, and when another thread gives back memory. */
  #admitWhenFreed(): void {
    if (this.#queue.size > 0) this.#options.limit.common?.whenFreed(() => this.#admitWhenFreed());
    this.#admit();
  }

  #enqueue(res: ServerResponse, caller: BodyCaller, bytes: number): Promise<void> {
    if (res.closed || res.destroyed) return Promise.reject(gone()); // no further `close` event will come
    return new Promise((resolve, reject) => {
      const finish = (then: () => void): void => {
        clearTimeout(deadline);
        res.off('close', onGone);
        this.#queue.delete(caller.address, waiting);
        then();
      };
      const waiting: Waiting = {
        caller,
        bytes,
        begin: () => finish(resolve),
        refuse: () => finish(() => reject(this.#refusal())),
      };
      const onGone = (): void => finish(() => reject(gone()));
      const deadline = setTimeout(waiting.refuse, this.#options.waitMsMax);
      res.once('close', onGone);
      if (bytes > this.bytesMax) return waiting.refuse(); // too large for the room even when it is empty
      this.#queue.add(caller.address, waiting)?.refuse();
      this.#admitWhenFreed();
    });
  }

  #refusal(): RequestError {
    this.#refused += 1;
    return overloaded();
  }
}

const keysOf = ({ tokenId, address }: BodyCaller): readonly string[] => [`token ${tokenId}`, `address ${address}`];
const gone = (): RequestError => new RequestError('request_aborted', 'the caller went away');
