import type { ServerResponse } from 'node:http';
import { FairQueue } from '@transitd/event-loop';
import { overloaded, RequestError } from '../reply/request-error.ts';

/** The authenticated caller to whose share a body counts. */
export interface BodyCaller {
  readonly tokenId: string;
  /** An IPv4 address, or the /64 network of an IPv6 address. */
  readonly address: string;
}

export interface BodyRoomOptions {
  readonly bytesMax: number;
  /** Maximum bytes for one token and for one address. A single body may exceed it. */
  readonly shareBytesMax: number;
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
  /** Reserved bytes by caller; the keys are `token …` and `address …`. */
  readonly #of = new Map<string, number>();
  #held = 0;
  #refused = 0;

  constructor(options: BodyRoomOptions) {
    this.#options = options;
    this.#queue = new FairQueue(options.waitingMax);
  }

  get bytesMax(): number {
    return this.#options.bytesMax;
  }

  get held(): number {
    return this.#held;
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
    if (this.#queue.size > 0 || !this.#fits(bytes) || !this.#isWithinShare(caller, bytes))
      return this.#enqueue(res, caller, bytes);
    this.#take(caller, bytes);
    return undefined;
  }

  release(caller: BodyCaller, bytes: number): void {
    this.#take(caller, -bytes);
    this.#admitQueued();
  }

  #fits(bytes: number): boolean {
    return this.#held + bytes <= this.#options.bytesMax;
  }

  #isWithinShare(caller: BodyCaller, bytes: number): boolean {
    return keysOf(caller).every((key) => {
      const held = this.#of.get(key) ?? 0;
      return held === 0 || held + bytes <= this.#options.shareBytesMax;
    });
  }

  #take(caller: BodyCaller, bytes: number): void {
    this.#held += bytes;
    for (const key of keysOf(caller)) {
      const held = (this.#of.get(key) ?? 0) + bytes;
      if (held > 0) this.#of.set(key, held);
      else this.#of.delete(key);
    }
  }

  /** Admits the queued bodies that fit now, address by address. */
  #admitQueued(): void {
    let isFull = false;
    const may = (_address: string, { caller, bytes }: Waiting): boolean => {
      if (isFull || !this.#isWithinShare(caller, bytes)) return false;
      isFull = !this.#fits(bytes);
      return !isFull;
    };
    while (this.#queue.size > 0) {
      const next = this.#queue.take(may);
      if (next === undefined) return;
      next.begin();
    }
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
        begin: () => {
          this.#take(caller, bytes);
          finish(resolve);
        },
        refuse: () => finish(() => reject(this.#refusal())),
      };
      const onGone = (): void => finish(() => reject(gone()));
      const deadline = setTimeout(waiting.refuse, this.#options.waitMsMax);
      res.once('close', onGone);
      if (bytes > this.#options.bytesMax) return waiting.refuse(); // too large for the room even when it is empty
      this.#queue.add(caller.address, waiting)?.refuse();
      this.#admitQueued();
    });
  }

  #refusal(): RequestError {
    this.#refused += 1;
    return overloaded();
  }
}

const keysOf = ({ tokenId, address }: BodyCaller): readonly string[] => [`token ${tokenId}`, `address ${address}`];
const gone = (): RequestError => new RequestError('request_aborted', 'the caller went away');
