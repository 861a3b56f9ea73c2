import type { IncomingMessage, ServerResponse } from 'node:http';
import { turnEnd } from '@transitd/event-loop';
import { announcesBody } from '../reply/announced-body.ts';
import { RequestError } from '../reply/request-error.ts';
import { Arrival, type ArrivalRate } from './arrival.ts';
import { type BodyReservation, uncountedBytes } from './body-memory.ts';
import { Pieces } from './pieces.ts';

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
  const { 'content-length': announced } = req.headers;
  if (hasUnknownCoding(req)) return Promise.reject(unknownCoding());
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
    const granted = () => {
      arrival.enforceRate();
      if (length !== undefined) pieces.allocate(length);
    };
    const onData = (chunk: Buffer) => {
      pieces.add(chunk);
      if (pieces.bytes > bytesMax) return finish(tooLarge());
      if (room === undefined || pieces.bytes <= uncountedBytes) return;
      const turn = room.grow(pieces.bytes, length, bytesMax);
      if (turn === undefined) return granted();
      req.pause();
      arrival.stop();
      const onRoom = () => {
        if (isFinished) return;
        arrival.start();
        granted();
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

const ignore = (): void => undefined;

const tooSlow = (reason: string): RequestError => new RequestError('body_timeout', `the request body ${reason}`);
const tooLarge = (): RequestError => new RequestError('body_too_large', 'http: request body too large');
/** Returns whether the body has a coding that the parser does not decode. It would be read as if it were plain. */
export const hasUnknownCoding = ({ headers: { 'transfer-encoding': coding } }: IncomingMessage): boolean =>
  coding !== undefined && coding.toLowerCase() !== 'chunked';
export const unknownCoding = (): RequestError =>
  new RequestError('invalid_request', 'unsupported transfer coding: only chunked is supported');
const aborted = (): RequestError => new RequestError('request_aborted', 'the request ended before its body was complete');
