import type { ServerResponse } from 'node:http';

/** How long the rest of a request's body is read and discarded, in milliseconds. */
const lingerMs = 5_000;

/**
 * Ends the response of a request whose body has not been read to its end, once the rest was read and discarded. The content must have been
 * written, with `Connection: close`. To end it at once would close the connection with unread bytes, and so reset it: the sender, a node
 * that forwards included, would lose the answer.
 */
export function endAfterDrain(res: ServerResponse): void {
  const { req } = res;
  if (req.readableEnded || req.destroyed) {
    res.end(); // the rest was read while the content was written
    return;
  }
  const deadline = setTimeout(() => res.end(), lingerMs);
  const end = (): void => {
    clearTimeout(deadline);
    res.end();
  };
  req.unpipe();
  req.once('end', end).once('close', end);
  req.resume();
}
