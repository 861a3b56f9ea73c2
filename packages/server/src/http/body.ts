import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestError } from './error-answer.ts';

/** How much of a body is read, and for how long. */
export interface BodyLimits {
  readonly bytesMax: number;
  /** Milliseconds from the call to the body's last byte. */
  readonly deadlineMs: number;
}

const nothing = Buffer.alloc(0);

/** Whether the head announces a body, if only one of length 0 (RFC 9112 §6.3). */
export const announcesBody = (req: IncomingMessage): boolean =>
  req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined;

/**
 * The whole body. A length announced above the limit is refused before a byte is read; a caller that asks first is told to go on
 * only when it fits, provided that the server sends `checkContinue` the same way as `request`. After any refusal the connection must
 * close, since what follows on it is the rest of that body; the answers to the codes below say `Connection: close`.
 * @throws RequestError `body_too_large`, `body_timeout`, `request_aborted`
 */
export function readBody(req: IncomingMessage, res: ServerResponse, { bytesMax, deadlineMs }: BodyLimits): Promise<Buffer> {
  const announced = req.headers['content-length'];
  if (announced === '0' || !announcesBody(req)) return Promise.resolve(nothing);
  if (announced !== undefined && Number(announced) > bytesMax) return Promise.reject(tooLarge());
  if (req.destroyed && !req.readableEnded) return Promise.reject(aborted());
  if (req.headers.expect !== undefined && req.httpVersionMinor > 0) res.writeContinue();
  return collect(req, bytesMax, deadlineMs);
}

function collect(req: IncomingMessage, bytesMax: number, deadlineMs: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const deadline = setTimeout(
      () => settle(new RequestError('body_timeout', 'the request body did not arrive in time')),
      deadlineMs,
    );
    const settle = (error?: RequestError) => {
      clearTimeout(deadline);
      req.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (error === undefined) return resolve(join(chunks, bytes));
      req.pause();
      req.on('error', ignore); // a caller that leaves after its refusal is no error
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) settle(tooLarge());
      else chunks.push(chunk);
    };
    const onEnd = () => settle();
    const onGone = () => settle(aborted());
    req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

const ignore = (): void => undefined;

function join(chunks: readonly Buffer[], bytes: number): Buffer {
  const [first] = chunks;
  if (first === undefined) return nothing;
  return chunks.length === 1 ? first : Buffer.concat(chunks, bytes);
}

const tooLarge = (): RequestError => new RequestError('body_too_large', 'http: request body too large');
const aborted = (): RequestError => new RequestError('request_aborted', 'the request ended before its body did');
