import type { ClientRequest, IncomingMessage } from 'node:http';

/**
 * Resolves with what `read` makes of the answer to a request.
 *
 * Node reports no error when a connection ends without an answer, as after `101 Switching Protocols`; a caller that only listened for
 * errors would wait forever. The signal rejects by itself, whatever became of the request.
 * @throws the error of the request, of `read` or of the signal
 */
export function answerTo<T>(
  outgoing: ClientRequest,
  signal: AbortSignal,
  read: (response: IncomingMessage) => T | Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    outgoing.on('response', (response) => {
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
