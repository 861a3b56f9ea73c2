import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6, SocketAddress } from 'node:net';
import { plainAddress, withinCidrs } from '@transitd/access';
import { callerHeader } from '@transitd/cluster';
import type { PipelineOptions } from './request.ts';

/**
 * Where a request comes from (decision 55): the other end of its connection or, when that is a trusted proxy, the last address in
 * `X-Forwarded-For` that is not one. What a proxy was told by others is never believed.
 * @param trustedProxies - blocks of addresses; empty for none
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
 * One text for one address, whatever form a proxy writes it in: with a port, in brackets, as an IPv4 address within IPv6, with zeros or capitals.
 * Limits and bound blocks would count each form as another caller. A text that is no address stays as it is.
 */
export function oneForm(written: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(written)?.[1];
  const bare = bracketed ?? /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(written)?.[1] ?? written;
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return written;
  // A zone is the proxy's own name of an interface.
  const [address = ''] = bare.split('%');
  return plainAddress(new SocketAddress({ family: 'ipv6', address }).address);
}

/** Where the caller is, as the node says that has taken the request; on this one's own listeners a caller's word counts for nothing. */
export function addressOf(
  req: IncomingMessage,
  { forwarded, trustedProxies = [] }: Pick<PipelineOptions, 'forwarded' | 'trustedProxies'>,
): string {
  const told = forwarded === true ? req.headers[callerHeader] : undefined;
  return typeof told === 'string' ? told : callerAddress(req, trustedProxies);
}
