import type { ServerResponse } from 'node:http';

/** The rest of a body is read and discarded for so many ticks. A stall of this process, in which nothing is read, is one of them. */
const lingerTicks = 10;

/**
 * Ends the response of a request whose body has not been read to its end, once the rest was read and discarded. The content must have been
 * written, with `Connection: close`. To end it at once would close the connection with unread bytes, and so reset it: the sender, a node
 * that forwards included, would lose the answer.
 */
export function endAfterDrain(res: ServerResponse, tickMs = 500): void {
  const { req } = res;
  if (req.readableEnded || req.destroyed) {
    res.end(); // the rest was read while the content was written
    return;
  }
  const end = (): void => {
    clearInterval(timer);
    res.end();
  };
  let ticks = 0;
  const timer = setInterval(() => ++ticks === lingerTicks && end(), tickMs);
  req.unpipe();
  req.once('end', end).once('close', end);
  req.resume();
}
