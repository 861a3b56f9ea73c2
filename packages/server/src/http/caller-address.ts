import type { IncomingMessage } from 'node:http';
import { plainAddress, withinCidrs } from '@transitd/access';

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
    const before = plainAddress(named.pop()?.trim() ?? '');
    if (before === '') return address;
    address = before;
  }
  return address;
}
