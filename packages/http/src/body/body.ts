import type { IncomingMessage, ServerResponse } from 'node:http';
import { announcesBody } from '../reply/announced-body.ts';
import { RequestError } from '../reply/request-error.ts';
import { type BodyReservation, uncountedBytes } from './body-memory.ts';

/** How much of a body is read, and for how long. */
export interface BodyLimits {
  readonly bytesMax: number;
  /** Milliseconds for the body to arrive, without the time for which it waits for room. */
  readonly deadlineMs: number;
  /** Where room is made for what is above 64 KiB; absent where a body needs none. */
  readonly room?: BodyReservation | undefined;
  /** How fast a body must arrive for which room was made. */
  readonly rate?: ArrivalRate;
}

/** `bytesMin` in each window of `windowMs` milliseconds. */
export interface ArrivalRate {
  readonly bytesMin: number;
  readonly windowMs: number;
}

/** 64 KiB a second. */
const usualRate: ArrivalRate = { bytesMin: 5 * 64 * 1024, windowMs: 5_000 };

const nothing = Buffer.alloc(0);

/**
 * The whole body. A length announced above the limit is refused before a byte is read; a caller that asks first is told to go on
 * only when it is short enough, provided that the server sends `checkContinue` the same way as `request`. After any refusal the connection must
 * close, since what follows on it is the rest of that body; `sendReply` sees to that.
 * @throws RequestError `invalid_request` for a transfer coding other than chunked, `body_too_large`, `overloaded`, `body_timeout`,
 * `request_aborted`
 */
export function readBody(req: IncomingMessage, res: ServerResponse, limits: BodyLimits): Promise<Buffer> {
  if (!announcesBody(req)) return Promise.resolve(nothing);
  const { 'content-length': announced, 'transfer-encoding': coding } = req.headers;
  // The parser undoes chunks alone: a body compressed beside that would be taken for what it is not.
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return Promise.reject(unknownCoding());
  if (announced !== undefined && Number(announced) > limits.bytesMax) return Promise.reject(tooLarge());
  if (req.destroyed && !req.readableEnded) return Promise.reject(aborted());
  if (req.headers.expect !== undefined && req.httpVersionMinor > 0) res.writeContinue();
  return collect(req, limits);
}

function collect(req: IncomingMessage, { bytesMax, deadlineMs, room, rate = usualRate }: BodyLimits): Promise<Buffer> {
  const { 'content-length': announced } = req.headers;
  const length = announced === undefined ? undefined : Number(announced);
  return new Promise((resolve, reject) => {
    const pieces = new Pieces();
    let isSettled = false;
    const arrival = new Arrival({ deadlineMs, rate, bytes: () => pieces.bytes, onSlow: (reason) => settle(tooSlow(reason)) });
    const settle = (error?: RequestError) => {
      isSettled = true;
      arrival.stop();
      req.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      room?.complete(error === undefined ? pieces.bytes : 0);
      if (error === undefined) return resolve(pieces.join());
      req.pause();
      req.on('error', ignore); // a caller that leaves after its refusal is no error
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      pieces.add(chunk);
      if (pieces.bytes > bytesMax) return settle(tooLarge());
      if (room === undefined || pieces.bytes <= uncountedBytes) return;
      const turn = room.grow(pieces.bytes, length, bytesMax);
      if (turn === undefined) return arrival.count();
      req.pause();
      arrival.stop();
      const onRoom = () => {
        if (isSettled) return;
        arrival.start();
        arrival.count();
        req.resume();
      };
      turn.then(onRoom, settle);
    };
    const onEnd = () => settle();
    const onGone = () => settle(aborted());
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

/** Watches a body on its way: all of it within the deadline and, once it counts, enough of it in each window. */
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

  /** From now on, until `stop`, the body must arrive fast enough. */
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
 * A body on its way in. The caller decides how small its pieces are, and a Buffer takes hundreds of bytes however little it holds:
 * so after the first few, small ones are copied together. Large ones stay as they came, to be copied once.
 */
class Pieces {
  static readonly #asTheyCame = 16;
  static readonly #smallBytesMax = 4096;
  static readonly #blockBytes = 65_536;
  readonly #pieces: Buffer[] = [];
  /** Where small pieces gather: its first `#used` bytes are taken and not yet among the pieces. */
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

  join(): Buffer {
    this.#flush();
    const [first = nothing] = this.#pieces;
    return this.#pieces.length <= 1 ? first : Buffer.concat(this.#pieces, this.#bytes);
  }

  /** The block's filled part becomes a piece; the rest of it remains to be filled. */
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
  new RequestError('invalid_request', 'the only transfer coding that is supported is chunked');
const aborted = (): RequestError => new RequestError('request_aborted', 'the request ended before its body did');
