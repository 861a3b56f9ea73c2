import type { IncomingMessage, ServerResponse } from 'node:http';
import { jsonValuesMax } from '../fields/json.ts';
import { mostValues, valuesAtMost } from '../fields/value-count.ts';
import { type ThreadLimit, undivided } from '../limits/thread-limit.ts';
import { type BodyCaller, BodyRoom } from './body-room.ts';

/** Bytes at the start of each body that need no reservation. Most bodies are shorter. */
export const uncountedBytes = 64 * 1024;

/** Returns whether a body may have to reserve memory: whether it is long, or of unknown length. */
export const mayNeedMemory = ({ headers }: IncomingMessage): boolean => !(Number(headers['content-length']) <= uncountedBytes);

/** How long the caller may take to read the response after sending a body with reserved memory. */
const answerMsMax = 120_000;
/** How long a body waits for memory. */
const waitMsMax = 60_000;
/** First reservation of a body of unknown length. The second reserves its maximum length. */
export const growingBytes = 1024 * 1024;

/** Memory that one parsed value takes, in bytes. Two or three characters of a body can be an empty object. */
const valueBytes = 64;
/** Memory for the values of the largest body. */
const parsedBytesMax = valueBytes * jsonValuesMax;

/** Part of the memory that the bodies of one caller may take. */
export const bodyCallerPart = 1 / 4;

/** Limits of the rooms of a {@link BodyMemory}, in bytes. */
export interface BodyMemoryLimits {
  readonly bodies: ThreadLimit;
  /** For the first 1 MiB of bodies of unknown length. */
  readonly growing: ThreadLimit;
  /** For the values of bodies that are parsed. */
  readonly parsed: ThreadLimit;
}

/** Returns the memory for the growing bodies that belongs to this memory for bodies. */
export const growingBytesOf = (bytes: number): number => Math.floor(bytes / 8);

/** Most values of a body that needs no reservation for them: those of several hundred items of a batch. */
const fewValues = 2048;

/**
 * Returns the memory that the values of a body take at most; 0 for a body of few values.
 * @param parsesText - a text in the body is parsed too, so that text also counts by its length
 */
export function valuesBytesOf(body: Buffer, { parsesText = false }: { readonly parsesText?: boolean } = {}): number {
  const values = body.length <= 2 * fewValues ? 0 : parsesText ? mostValues(body) : valuesAtMost(body);
  return values <= fewValues ? 0 : valueBytes * values;
}

/** Returns the memory for parsed bodies that belongs to this memory for bodies. */
export const parsedBytesOf = (bytes: number): number => Math.max(bytes, parsedBytesMax);

/** Returns the limits of a node with one thread. */
export const bodyMemoryLimits = (bytes: number): BodyMemoryLimits => ({
  bodies: undivided(bytes, bodyCallerPart),
  growing: undivided(growingBytesOf(bytes), bodyCallerPart),
  parsed: undivided(parsedBytesOf(bytes), bodyCallerPart),
});

/** Memory reservation of one body. */
export interface BodyReservation {
  /**
   * Reserves memory for a body of which more than 64 KiB has arrived.
   * @param arrived - bytes so far
   * @param length - announced length; undefined for a chunked body, which reserves 1 MiB first and its maximum later
   * @returns a promise if the body has to wait; it may reject.
   * @throws RequestError `overloaded`, `request_aborted`
   */
  grow(arrived: number, length: number | undefined, bytesMax: number): Promise<void> | undefined;
  /** Called when the body is complete: releases the reservation except for these bytes. */
  complete(bytes: number): void;
}

interface Held {
  readonly room: BodyRoom;
  readonly caller: BodyCaller;
  /** Bytes of the body, including those that need no reservation. */
  readonly bytes: number;
}

/**
 * Memory for large bodies. The body of an authenticated request reserves its length once its first 64 KiB have arrived, and waits if
 * necessary. So a caller that announces a large body and sends nothing reserves nothing. Memory is released once the response is read. The
 * first 1 MiB of chunked bodies is reserved in a separate room, so a chunked body that waits to grow holds no memory that other bodies wait
 * for.
 *
 * The values of a parsed body can take twenty times its length. All requests share the event loop, so without a limit the values of all of
 * them would be in memory at the same time. So a body of many values reserves memory for them while it is parsed and used.
 */
export class BodyMemory {
  readonly #room: BodyRoom;
  readonly #growing: BodyRoom;
  readonly #parsed: BodyRoom;
  readonly #of = new Map<ServerResponse, Held>();

  /** @param waitingMax - maximum number of queued bodies in each of the rooms */
  constructor({ bodies, growing, parsed }: BodyMemoryLimits, waitingMax: number) {
    const roomOf = (limit: ThreadLimit): BodyRoom => new BodyRoom({ limit, waitingMax, waitMsMax });
    this.#room = roomOf(bodies);
    this.#growing = roomOf(growing);
    this.#parsed = roomOf(parsed);
  }

  /** Bytes of bodies, without those of their values. */
  get held(): number {
    return this.#room.held + this.#growing.held;
  }

  get waiting(): number {
    return this.#room.waiting + this.#growing.waiting + this.#parsed.waiting;
  }

  /** Since the start. */
  get refused(): number {
    return this.#room.refused + this.#growing.refused + this.#parsed.refused;
  }

  /** Returns the reservation for the body of one request. */
  reservation(res: ServerResponse, caller: BodyCaller): BodyReservation {
    return {
      grow: (arrived, length, bytesMax) => this.#grow(res, caller, { arrived, length, bytesMax }),
      complete: (bytes) => this.#complete(res, bytes),
    };
  }

  /**
   * Reserves memory for the values of a body until `parsed` is called, at once or when the returned promise resolves.
   * @param values - number of bytes that `valuesBytesOf` returned for the body
   * @throws RequestError `overloaded`, `request_aborted`; only the promise rejects with them
   */
  parse(res: ServerResponse, caller: BodyCaller, values: number): Promise<void> | undefined {
    return this.#parsed.reserve(res, caller, values);
  }

  /** Reserves memory as `parse` does, if it is free now. Returns whether it did. */
  tryParse(caller: BodyCaller, values: number): boolean {
    return this.#parsed.tryReserve(caller, values);
  }

  /** Called when the values of a body are no longer used. */
  parsed(caller: BodyCaller, values: number): void {
    this.#parsed.release(caller, values);
  }

  /** Called when the response is sent: closes the connection of a caller that does not read it in time. */
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
    const before = this.#of.get(res); // read only now: part of the reservation may have been released while this body waited
    if (before === undefined) res.once('close', () => this.#release(res));
    else before.room.release(before.caller, counted(before.bytes));
    this.#of.set(res, held);
    if (res.closed || res.destroyed) this.#release(res); // the caller disconnected just as the body was admitted
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
