import type { ServerResponse } from 'node:http';
import { FairQueue } from '@transitd/event-loop';
import { overloaded, RequestError } from '../reply/request-error.ts';

/** The caller that a body counts for, once it is known. */
export interface BodyCaller {
  readonly tokenId: string;
  /** An IPv4 address or the /64 of an IPv6 one. */
  readonly address: string;
}

export interface BodyRoomOptions {
  readonly bytesMax: number;
  /** For one token, and for one address; a single body may be larger. */
  readonly shareBytesMax: number;
  /** Bodies that wait for room; more are refused. */
  readonly waitingMax: number;
  /** How long one waits at most, in milliseconds. */
  readonly waitMsMax: number;
}

interface Waiting {
  readonly caller: BodyCaller;
  readonly bytes: number;
  readonly begin: () => void;
  readonly refuse: () => void;
}

/**
 * Bytes that are reserved for bodies. Those that find no room wait: addresses take turns, and a large body is not passed over for smaller
 * ones that still fit.
 */
export class BodyRoom {
  readonly #options: BodyRoomOptions;
  readonly #line: FairQueue<Waiting>;
  /** Bytes by `token …` and by `address …`. */
  readonly #of = new Map<string, number>();
  #held = 0;
  #refused = 0;

  constructor(options: BodyRoomOptions) {
    this.#options = options;
    this.#line = new FairQueue(options.waitingMax);
  }

  get bytesMax(): number {
    return this.#options.bytesMax;
  }

  get held(): number {
    return this.#held;
  }

  get waiting(): number {
    return this.#line.size;
  }

  /** Since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** Reserves bytes, which `release` gives back: at once or when the promise resolves. @throws RequestError `overloaded`, `request_aborted`, by the promise */
  reserve(res: ServerResponse, caller: BodyCaller, bytes: number): Promise<void> | undefined {
    if (this.#line.size > 0 || !this.#fits(bytes) || !this.#isWithinShare(caller, bytes)) return this.#turn(res, caller, bytes);
    this.#take(caller, bytes);
    return undefined;
  }

  release(caller: BodyCaller, bytes: number): void {
    this.#take(caller, -bytes);
    this.#serve();
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

  /** Lets in those that have room now, in turn. */
  #serve(): void {
    let isFull = false;
    const may = (_address: string, { caller, bytes }: Waiting): boolean => {
      if (isFull || !this.#isWithinShare(caller, bytes)) return false;
      isFull = !this.#fits(bytes);
      return !isFull;
    };
    while (this.#line.size > 0) {
      const next = this.#line.take(may);
      if (next === undefined) return;
      next.begin();
    }
  }

  #turn(res: ServerResponse, caller: BodyCaller, bytes: number): Promise<void> {
    if (res.closed || res.destroyed) return Promise.reject(gone()); // it says so no second time
    return new Promise((resolve, reject) => {
      const settle = (then: () => void): void => {
        clearTimeout(deadline);
        res.off('close', onGone);
        this.#line.delete(caller.address, waiting);
        then();
      };
      const waiting: Waiting = {
        caller,
        bytes,
        begin: () => {
          this.#take(caller, bytes);
          settle(resolve);
        },
        refuse: () => settle(() => reject(this.#refusal())),
      };
      const onGone = (): void => settle(() => reject(gone()));
      const deadline = setTimeout(waiting.refuse, this.#options.waitMsMax);
      res.once('close', onGone);
      if (bytes > this.#options.bytesMax) return waiting.refuse(); // it would wait in vain
      this.#line.add(caller.address, waiting)?.refuse();
      this.#serve();
    });
  }

  #refusal(): RequestError {
    this.#refused += 1;
    return overloaded();
  }
}

const keysOf = ({ tokenId, address }: BodyCaller): readonly string[] => [`token ${tokenId}`, `address ${address}`];
const gone = (): RequestError => new RequestError('request_aborted', 'the caller went away');
