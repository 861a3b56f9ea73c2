import type { IncomingMessage } from 'node:http';

/** Whether the head announces a body of more than no bytes (RFC 9112 §6.3). */
export function announcesBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return length === undefined ? headers['transfer-encoding'] !== undefined : length !== '0';
}
