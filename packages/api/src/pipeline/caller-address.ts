import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6, SocketAddress } from 'node:net';
import { callerHeader, certificateHeader } from '@transitd/cluster';
import { clientCertificateOf } from '@transitd/http';
import { type ClientCertificate, clientCertificateIn, plainAddress, withinCidrs } from '@transitd/process';
import type { PipelineOptions } from './request.ts';

/**
 * Returns the client address: the remote address or, behind a trusted proxy, the last address in `X-Forwarded-For` that is
 * not a trusted proxy. Entries before that address are never trusted.
 * @param trustedProxies - CIDR blocks; empty if no proxy is trusted
 */
export function callerAddress({ socket, headers }: IncomingMessage, trustedProxies: readonly string[]): string {
  let address = plainAddress(socket.remoteAddress ?? '');
  if (trustedProxies.length === 0) return address;
  const named = String(headers['x-forwarded-for'] ?? '').split(',');
  while (withinCidrs(trustedProxies, address)) {
    const before = oneForm(named.pop()?.trim() ?? '');
    if (before === '') return address;
    address = before;
  }
  return address;
}

/**
 * Returns the canonical form of an address. A proxy may write it with a port, in brackets, as IPv4-mapped IPv6, with leading zeros or in
 * capitals, and without a canonical form limits and bound CIDR blocks would treat each form as a different caller. A string that is not an
 * address is returned unchanged.
 */
function oneForm(written: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(written)?.[1];
  const bare = bracketed ?? /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(written)?.[1] ?? written;
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return written;
  // Remove the zone id: it names an interface of the proxy.
  const [address = ''] = bare.split('%');
  return plainAddress(new SocketAddress({ family: 'ipv6', address }).address);
}

/** Returns the client address: from the forwarding node's header on the cluster port, else from the connection. */
export function addressOf(
  req: IncomingMessage,
  { forwarded, trustedProxies = [] }: Pick<PipelineOptions, 'forwarded' | 'trustedProxies'>,
): string {
  const told = forwarded === true ? req.headers[callerHeader] : undefined;
  return typeof told === 'string' ? told : callerAddress(req, trustedProxies);
}

/** Returns the verified certificate of the client: from the forwarding node's header on the cluster port, else from the connection. */
export function certificateOf(
  { headers, socket }: IncomingMessage,
  { forwarded }: Pick<PipelineOptions, 'forwarded'>,
): ClientCertificate | undefined {
  if (forwarded !== true) return clientCertificateOf(socket);
  const told = headers[certificateHeader];
  return typeof told === 'string' ? clientCertificateIn(told) : undefined;
}
