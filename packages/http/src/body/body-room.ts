import type { ServerResponse } from 'node:http';
import type { Taken } from '@transitd/event-loop';
import { CallerAmounts, TakenAmount, type ThreadLimit } from '../limits/thread-limit.ts';
import { WaitingRequests } from '../limits/waiting-requests.ts';

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

/**
 * Reserves bytes for bodies and queues those that do not fit, fairly between addresses. A small body does not overtake a large body that
 * waits.
 */
export class BodyRoom {
  readonly #bytes: TakenAmount;
  /** Reserved bytes by caller; the keys are `token …` and `address …`. */
  readonly #of: CallerAmounts;
  readonly #waiting: WaitingRequests<Reservation>;

  constructor({ limit, waitingMax, waitMsMax }: BodyRoomOptions) {
    this.#bytes = new TakenAmount(limit);
    this.#of = new CallerAmounts(limit);
    const tryTake = (_address: string, { caller, bytes }: Reservation) => this.#tryTake(caller, bytes);
    this.#waiting = new WaitingRequests({ waitingMax, waitMsMax, common: limit.common, tryTake });
  }

  get bytesMax(): number {
    return this.#bytes.max;
  }

  get held(): number {
    return this.#bytes.taken;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Since the start. */
  get refused(): number {
    return this.#waiting.refused;
  }

  /**
   * Reserves bytes, either at once or when the returned promise resolves; the promise may reject.
   * @throws RequestError `overloaded`, `request_aborted`
   */
  reserve(res: ServerResponse, caller: BodyCaller, bytes: number): Promise<void> | undefined {
    if (this.tryReserve(caller, bytes)) return undefined;
    if (bytes > this.bytesMax) return Promise.reject(this.#waiting.refusal()); // too large for the room even when it is empty
    return this.#waiting.add(res, caller.address, { caller, bytes });
  }

  /** Reserves bytes if they are free and no body waits. Returns whether it did. */
  tryReserve(caller: BodyCaller, bytes: number): boolean {
    return this.#waiting.size === 0 && this.#tryTake(caller, bytes) === 'taken';
  }

  release(caller: BodyCaller, bytes: number): void {
    this.#bytes.giveBack(bytes);
    for (const key of keysOf(caller)) this.#of.giveBack(key, bytes);
    this.#waiting.admit();
  }

  #tryTake(caller: BodyCaller, bytes: number): Taken {
    const keys = keysOf(caller);
    if (!keys.every((key) => this.#of.hasNone(key) || this.#of.fits(key, bytes))) return 'beyond the share';
    if (!this.#bytes.tryTake(bytes)) return 'full';
    for (const key of keys) this.#of.take(key, bytes); // threads that look at once may each exceed the share by one body
    return 'taken';
  }
}

interface Reservation {
  readonly caller: BodyCaller;
  readonly bytes: number;
}

const keysOf = ({ tokenId, address }: BodyCaller): readonly string[] => [`token ${tokenId}`, `address ${address}`];
