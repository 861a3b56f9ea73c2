import type { EventEmitter } from 'node:events';

/**
 * Resolves with what `read` makes of the answer to a request of `node:http` or `node:https`.
 *
 * Node reports no error when a connection ends without an answer, as after `101 Switching Protocols`; a caller that only listened for
 * errors would wait forever. The signal rejects by itself, whatever became of the request.
 * @throws the error of the request, of `read` or of the signal
 */
export function answerTo<Response, T>(
  outgoing: EventEmitter,
  signal: AbortSignal,
  read: (response: Response) => T | Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    outgoing.on('response', (response: Response) => {
      isAnswered = true;
      (async () => read(response))().then(resolve, reject);
    });
    outgoing.on('error', reject);
    outgoing.on('close', () => {
      if (!isAnswered) reject(new Error('the connection ended without an answer'));
    });
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/**
 * Reads the body of an answer to its end. Leaving a body that is too long closes its connection.
 * @throws the error of a body that breaks off; what `tooLong` returns for one of more than `bytesMax` bytes
 */
export async function bytesOf(
  body: AsyncIterable<Buffer>,
  bytesMax: number,
  tooLong: () => Error = () => new Error(`the answer has more than ${bytesMax} bytes`),
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw tooLong();
    chunks.push(chunk);
  }
  const all = Buffer.concat(chunks);
  for (const chunk of chunks) chunk.fill(0); // it may contain a key
  return all;
}
