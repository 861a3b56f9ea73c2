import { isIP } from 'node:net';

/** Returns whether only processes on this machine can reach the host. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Returns `host:port`, an IPv6 host in brackets, as the configuration file has it. */
export const addressText = ({ host, port }: { readonly host: string; readonly port: number | string }): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;
