import { timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import { type ClientCertificate, clientCertificateIn, clientCertificateText } from '@transitd/process';

/** Header in which a gateway tells the main thread where a request came from. The main thread trusts it only if it contains the secret. */
export const gatewayHeader = 'x-transitd-gateway';

/** The connection of a client to a gateway. */
export interface Sender {
  /** Index of the listener. */
  readonly listener: number;
  readonly address: string;
  readonly port: number;
  /** The verified certificate of the client; undefined for none. */
  readonly certificate: ClientCertificate | undefined;
}

export const senderText = (
  secret: string,
  listener: number,
  { remoteAddress = '', remotePort = 0 }: Pick<Socket, 'remoteAddress' | 'remotePort'>,
  certificate: ClientCertificate | undefined,
): string =>
  `${secret} ${listener} ${remotePort} ${remoteAddress}${certificate === undefined ? '' : ` ${clientCertificateText(certificate)}`}`;

/** Returns the sender that a header names; undefined if the header lacks the secret. */
export function senderIn(header: string | string[] | undefined, secret: string): Sender | undefined {
  const [given = '', listener = '', port = '', address = '', certificate = ''] = String(header ?? '').split(' ');
  const [expected, actual] = [Buffer.from(secret), Buffer.from(given)];
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return undefined;
  return { listener: Number(listener), port: Number(port), address, certificate: clientCertificateIn(certificate) };
}
