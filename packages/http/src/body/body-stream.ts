import type { IncomingMessage, ServerResponse } from 'node:http';
import { arrivalDeadline } from '../limits/arrival-deadline.ts';
import { announcesBody } from '../reply/announced-body.ts';
import { RequestError } from '../reply/request-error.ts';
import { hasUnknownCoding, unknownCoding } from './body.ts';

/** How long a large body may stall, in milliseconds. */
const stallMsMax = 30_000;

/**
 * Returns the body as a stream, for bodies too large for memory; undefined if the request has no body. If the consumer stops early,
 * `sendReply` handles the rest of the body.
 * @throws RequestError `invalid_request` for a transfer coding other than chunked; reading the stream throws `body_timeout` or
 * `request_aborted`
 */
export function bodyStream(req: IncomingMessage, res: ServerResponse): AsyncIterable<Uint8Array> | undefined {
  if (!announcesBody(req)) return undefined;
  if (hasUnknownCoding(req)) throw unknownCoding();
  return pieces(req, res);
}

async function* pieces(req: IncomingMessage, res: ServerResponse): AsyncGenerator<Uint8Array> {
  if (req.headers.expect !== undefined && req.httpVersionMinor > 0) res.writeContinue();
  const iterator = req.iterator({ destroyOnReturn: false });
  req.on('error', () => undefined); // reported by the iterator
  try {
    for (;;) {
      const piece = await orStalled(iterator.next());
      if (piece.done === true) return;
      yield piece.value;
    }
  } finally {
    await iterator.return?.();
  }
}

async function orStalled<T>(next: Promise<T>): Promise<T> {
  const { promise: stalled, reject } = Promise.withResolvers<never>();
  const endDeadline = arrivalDeadline(stallMsMax, () => reject(new RequestError('body_timeout', 'the request body stalled')));
  try {
    return await Promise.race([
      next.catch(() => {
        throw new RequestError('request_aborted', 'the request ended before its body was complete');
      }),
      stalled,
    ]);
  } finally {
    endDeadline();
  }
}
