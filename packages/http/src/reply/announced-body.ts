import type { IncomingMessage } from 'node:http';

/** Returns whether the headers announce a non-empty body (RFC 9112 §6.3). */
export function announcesBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return length === undefined ? headers['transfer-encoding'] !== undefined : length !== '0';
}
