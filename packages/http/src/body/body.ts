import type { IncomingMessage, ServerResponse } from 'node:http';
import { TimeSlice, turnEnd } from '@transitd/event-loop';
import { announcesBody } from '../reply/announced-body.ts';
import { RequestError } from '../reply/request-error.ts';
import { type BodyReservation, uncountedBytes } from './body-memory.ts';

/** Limits for reading one body. */
export interface BodyLimits {
  readonly bytesMax: number;
  /** Milliseconds within which the body must arrive, not counting the time it waits for memory. */
  readonly deadlineMs: number;
  /** Memory reservation for bodies above 64 KiB; absent if bodies need no reservation. */
  readonly room?: BodyReservation | undefined;
  /** Minimum rate of a body with reserved memory. */
  readonly rate?: ArrivalRate;
}

/** A minimum rate: at least `bytesMin` bytes in each window of `windowMs` milliseconds. */
export interface ArrivalRate {
  readonly bytesMin: number;
  readonly windowMs: number;
}

/** 64 KiB a second. */
const usualRate: ArrivalRate = { bytesMin: 5 * 64 * 1024, windowMs: 5_000 };

const nothing = Buffer.alloc(0);

/**
 * Reads the whole body. Returns it at once if it has arrived together with the head, as most small bodies do. An announced length above the
 * limit is refused before a byte is read, and `Expect: 100-continue` is answered only for an allowed length, provided that the server
 * handles `checkContinue` as `request`. After a refusal the connection must close, because the rest of the body follows on it; `sendReply`
 * does that.
 * @throws RequestError `invalid_request` for a transfer coding other than chunked, `body_too_large`, `overloaded`, `body_timeout`,
 * `request_aborted`
 */
export function readBody(req: IncomingMessage, res: ServerResponse, limits: BodyLimits): Buffer | Promise<Buffer> {
  if (!announcesBody(req)) return nothing;
  const { 'content-length': announced, 'transfer-encoding': coding } = req.headers;
  // The parser decodes only chunked: a compressed body would be read as if it were plain.
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return Promise.reject(unknownCoding());
  if (announced !== undefined && Number(announced) > limits.bytesMax) return Promise.reject(tooLarge());
  if (isAborted(req)) return Promise.reject(aborted());
  if (req.headers.expect !== undefined && req.httpVersionMinor > 0) res.writeContinue();
  return arrived(req, limits) ?? (Number(announced) <= uncountedBytes ? atTurnEnd(req, limits) : collect(req, limits));
}

const isAborted = (req: IncomingMessage): boolean => req.destroyed && !req.readableEnded;

/** Reads a small body, which most clients send in one packet with the head. Node parses it after it has called us for the head. */
async function atTurnEnd(req: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  await turnEnd();
  if (isAborted(req)) throw aborted();
  return arrived(req, limits) ?? collect(req, limits);
}

/** Returns a complete body that needs no memory reservation and that nobody has read from; undefined for any other. */
function arrived(req: IncomingMessage, { bytesMax }: BodyLimits): Buffer | undefined {
  const { complete, readableDidRead, destroyed, readableLength: length } = req;
  const isWhole = complete && !readableDidRead && !destroyed && length > 0;
  return isWhole && length <= Math.min(bytesMax, uncountedBytes) ? (req.read() ?? undefined) : undefined;
}

function collect(req: IncomingMessage, { bytesMax, deadlineMs, room, rate = usualRate }: BodyLimits): Promise<Buffer> {
  const { 'content-length': announced } = req.headers;
  const length = announced === undefined ? undefined : Number(announced);
  return new Promise((resolve, reject) => {
    const pieces = new Pieces();
    let isFinished = false;
    const arrival = new Arrival({ deadlineMs, rate, bytes: () => pieces.bytes, onSlow: (reason) => finish(tooSlow(reason)) });
    const finish = (error?: RequestError) => {
      isFinished = true;
      arrival.stop();
      req.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      room?.complete(error === undefined ? pieces.bytes : 0);
      if (error === undefined) return resolve(pieces.join()); // a promise, if the body is long
      req.pause();
      req.on('error', ignore); // a caller may disconnect after a refusal
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      pieces.add(chunk);
      if (pieces.bytes > bytesMax) return finish(tooLarge());
      if (room === undefined || pieces.bytes <= uncountedBytes) return;
      const turn = room.grow(pieces.bytes, length, bytesMax);
      if (turn === undefined) return arrival.count();
      req.pause();
      arrival.stop();
      const onRoom = () => {
        if (isFinished) return;
        arrival.start();
        arrival.count();
        req.resume();
      };
      turn.then(onRoom, finish);
    };
    const onEnd = () => finish();
    const onGone = () => finish(aborted());
    req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
    arrival.start();
  });
}

interface ArrivalOptions {
  readonly deadlineMs: number;
  readonly rate: ArrivalRate;
  /** Bytes that have arrived. */
  readonly bytes: () => number;
  readonly onSlow: (reason: string) => void;
}

/** Checks that a body arrives within the deadline and, after `count`, with the minimum rate in each window. */
class Arrival {
  readonly #options: ArrivalOptions;
  #deadline: NodeJS.Timeout | undefined;
  #window: NodeJS.Timeout | undefined;

  constructor(options: ArrivalOptions) {
    this.#options = options;
  }

  start(): void {
    const { deadlineMs, onSlow } = this.#options;
    this.#deadline = setTimeout(() => onSlow('did not arrive in time'), deadlineMs);
  }

  /** Enforces the minimum rate from now until `stop`. */
  count(): void {
    if (this.#window !== undefined) return;
    const { rate, bytes, onSlow } = this.#options;
    let before = bytes();
    this.#window = setInterval(() => {
      if (bytes() - before < rate.bytesMin)
        onSlow(`arrives too slowly: ${rate.bytesMin} bytes in ${rate.windowMs} ms are needed`);
      before = bytes();
    }, rate.windowMs);
  }

  stop(): void {
    clearTimeout(this.#deadline);
    clearInterval(this.#window);
    this.#window = undefined;
  }
}

const ignore = (): void => undefined;

/**
 * Collects the pieces of a body. The caller chooses their size, and each Buffer costs hundreds of bytes. So after the first few, small
 * pieces are copied into blocks. Large pieces are kept and copied only once, at the end.
 */
class Pieces {
  static readonly #asTheyCame = 16;
  static readonly #smallBytesMax = 4096;
  static readonly #blockBytes = 65_536;
  static readonly #joinedAtOnceBytesMax = 1024 * 1024;
  readonly #pieces: Buffer[] = [];
  /** Block for small pieces. Its first `#used` bytes are filled and not yet in `#pieces`. */
  #block = nothing;
  #used = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    if (piece.length > Pieces.#smallBytesMax || this.#pieces.length < Pieces.#asTheyCame) {
      this.#flush();
      this.#pieces.push(piece);
      return;
    }
    if (piece.length > this.#block.length - this.#used) {
      this.#flush();
      this.#block = Buffer.allocUnsafe(Pieces.#blockBytes);
    }
    piece.copy(this.#block, this.#used);
    this.#used += piece.length;
  }

  /** Returns the whole body. A long one is copied in slices between which the event loop runs. */
  join(): Buffer | Promise<Buffer> {
    this.#flush();
    const [first = nothing] = this.#pieces;
    if (this.#pieces.length <= 1) return first;
    return this.#bytes <= Pieces.#joinedAtOnceBytesMax ? Buffer.concat(this.#pieces, this.#bytes) : this.#joinInSlices();
  }

  async #joinInSlices(): Promise<Buffer> {
    const whole = Buffer.allocUnsafe(this.#bytes);
    const slice = new TimeSlice();
    let at = 0;
    for (const piece of this.#pieces) {
      if (slice.isOver) await slice.next();
      at += piece.copy(whole, at);
    }
    await slice.next(); // the caller continues in a turn of its own
    return whole;
  }

  /** Moves the filled part of the block to the pieces; later pieces use the remaining part. */
  #flush(): void {
    if (this.#used === 0) return;
    this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = this.#block.subarray(this.#used);
    this.#used = 0;
  }
}

const tooSlow = (reason: string): RequestError => new RequestError('body_timeout', `the request body ${reason}`);
const tooLarge = (): RequestError => new RequestError('body_too_large', 'http: request body too large');
const unknownCoding = (): RequestError =>
  new RequestError('invalid_request', 'unsupported transfer coding: only chunked is supported');
const aborted = (): RequestError => new RequestError('request_aborted', 'the request ended before its body was complete');
