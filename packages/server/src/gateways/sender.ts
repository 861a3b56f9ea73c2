import { timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';

/** Header with which a gateway shows the main thread where a request came from. It is trusted only together with the secret in it. */
export const gatewayHeader = 'x-transitd-gateway';

/** The connection of a client to a gateway. */
export interface Sender {
  /** Index of the listener. */
  readonly listener: number;
  readonly address: string;
  readonly port: number;
}

export const senderText = (
  secret: string,
  listener: number,
  { remoteAddress = '', remotePort = 0 }: Pick<Socket, 'remoteAddress' | 'remotePort'>,
): string => `${secret} ${listener} ${remotePort} ${remoteAddress}`;

/** Returns the sender in a header; undefined unless the header has the secret. */
export function senderIn(header: string | string[] | undefined, secret: string): Sender | undefined {
  const [given = '', listener = '', port = '', address = ''] = String(header ?? '').split(' ');
  const [expected, actual] = [Buffer.from(secret), Buffer.from(given)];
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return undefined;
  return { listener: Number(listener), port: Number(port), address };
}
