import type { ServerResponse } from 'node:http';
import { type BodyCaller, BodyRoom } from './body-room.ts';

/** Bytes of each body that are not counted: most requests have fewer, and then cost nothing. */
export const uncountedBytes = 64 * 1024;
/** How long the answer to a counted body may take to be read. */
const answerMsMax = 120_000;
/** How long a body waits for room. */
const waitMsMax = 60_000;
/** Reserved for a body of unknown length before the most that it may have. */
const growingBytes = 1024 * 1024;

/** Reserves for one body, as it grows. */
export interface BodyReservation {
  /**
   * Makes room for a body of which more than 64 KiB has arrived.
   * @param arrived - bytes so far
   * @param length - as announced; undefined for a chunked body, which then takes 1 MiB first and later the most that it may have
   * @returns a promise where there is no room at once. @throws RequestError `overloaded`, `request_aborted`, by the promise
   */
  grow(arrived: number, length: number | undefined, bytesMax: number): Promise<void> | undefined;
  /** No more of the body will be kept than these bytes: gives back the rest. */
  complete(bytes: number): void;
}

interface Held {
  readonly room: BodyRoom;
  readonly caller: BodyCaller;
  /** Of the body, the uncounted ones among them. */
  readonly bytes: number;
}

/**
 * Memory for large bodies. A body of a known caller reserves its length when its first 64 KiB are here, and waits for that if need be: a
 * caller that announces much and sends nothing holds nothing. It is held until the answer has been read. Chunked bodies of up to 1 MiB have
 * room of their own: one that must wait for more holds nothing that the others wait for.
 */
export class BodyMemory {
  readonly #room: BodyRoom;
  readonly #growing: BodyRoom;
  readonly #of = new Map<ServerResponse, Held>();

  /** @param waitingMax - bodies that wait at a time, in each of the two rooms */
  constructor(bytesMax: number, waitingMax: number) {
    const roomOf = (bytes: number): BodyRoom =>
      new BodyRoom({ bytesMax: bytes, shareBytesMax: Math.floor(bytes / 4), waitingMax, waitMsMax });
    this.#room = roomOf(bytesMax);
    this.#growing = roomOf(Math.floor(bytesMax / 8));
  }

  get held(): number {
    return this.#room.held + this.#growing.held;
  }

  get waiting(): number {
    return this.#room.waiting + this.#growing.waiting;
  }

  /** Since the start. */
  get refused(): number {
    return this.#room.refused + this.#growing.refused;
  }

  /** Reserves for the body of one request. */
  reservation(res: ServerResponse, caller: BodyCaller): BodyReservation {
    return {
      grow: (arrived, length, bytesMax) => this.#grow(res, caller, { arrived, length, bytesMax }),
      complete: (bytes) => this.#complete(res, bytes),
    };
  }

  /** The answer is on its way: cuts the connection of a caller that does not read it. */
  answered(res: ServerResponse): void {
    if (!this.#of.has(res)) return;
    const deadline = setTimeout(() => res.destroy(), answerMsMax);
    res.once('close', () => clearTimeout(deadline));
  }

  #grow(
    res: ServerResponse,
    caller: BodyCaller,
    { arrived, length, bytesMax }: { readonly arrived: number; readonly length: number | undefined; readonly bytesMax: number },
  ): Promise<void> | undefined {
    const before = this.#of.get(res);
    if (arrived <= (before?.bytes ?? uncountedBytes)) return undefined;
    const grows = length === undefined && arrived <= growingBytes && growingBytes <= this.#growing.bytesMax;
    const room = grows ? this.#growing : this.#room;
    const held: Held = { room, caller, bytes: length ?? (grows ? growingBytes : bytesMax) };
    const turn = room.reserve(res, caller, counted(held.bytes));
    if (turn !== undefined) return turn.then(() => this.#hold(res, held));
    this.#hold(res, held);
    return undefined;
  }

  #hold(res: ServerResponse, held: Held): void {
    const before = this.#of.get(res); // as it is now: part of it may have been given back while this body waited
    if (before === undefined) res.once('close', () => this.#release(res));
    else before.room.release(before.caller, counted(before.bytes));
    this.#of.set(res, held);
    if (res.closed || res.destroyed) this.#release(res); // it went away in the moment in which its turn came
  }

  #complete(res: ServerResponse, bytes: number): void {
    const held = this.#of.get(res);
    if (held === undefined || bytes >= held.bytes) return;
    this.#of.set(res, { ...held, bytes });
    held.room.release(held.caller, counted(held.bytes) - counted(bytes));
  }

  #release(res: ServerResponse): void {
    const held = this.#of.get(res);
    if (held === undefined) return;
    this.#of.delete(res);
    held.room.release(held.caller, counted(held.bytes));
  }
}

const counted = (bytes: number): number => Math.max(0, bytes - uncountedBytes);
