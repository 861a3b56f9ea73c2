import { lookup } from 'node:dns/promises';
import { isIPv6, Socket } from 'node:net';
import type { ListenerConfig } from '@transitd/configuration';

/** TCP refuses to connect to a multicast address before it sends anything. */
const multicast = { ipv4: '224.0.0.1', ipv6: 'ff02::1' } as const;

/**
 * Returns why no server could listen on the address alone; undefined if one could. Port 0 is always free.
 *
 * No server listens for the check: a client that connected meanwhile would be accepted, and then reset. Linux also refuses to *bind* a
 * socket to an address on which another socket listens, even to one that shares it.
 */
export async function unusable({ host, port }: ListenerConfig['address']): Promise<NodeJS.ErrnoException | undefined> {
  if (port === 0) return undefined;
  if (host !== '') return bindError(await addressOf(host), port);
  // A server without a host listens on `::`, or on `0.0.0.0` if the machine has no IPv6.
  const error = await bindError('::', port);
  return error === undefined || error.code === 'EADDRINUSE' ? error : bindError('0.0.0.0', port);
}

/** Returns the address that a server uses for the host: like Node's, the first that is not link-local. */
async function addressOf(host: string): Promise<string> {
  const addresses = (await lookup(host, { all: true })).map(({ address }) => address);
  return addresses.find((address) => !/^fe[89ab]/.test(address)) ?? host;
}

/** Binds a socket to the IP address for a moment. Returns why it could not be bound. */
function bindError(localAddress: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  const socket = new Socket();
  let failure: NodeJS.ErrnoException | undefined;
  return new Promise((resolve) => {
    // Node binds a client's socket only to connect it, so the attempt to connect has to fail.
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.syscall === 'bind') failure = error;
    });
    socket.once('connectionAttempt', () => setImmediate(() => socket.destroy()));
    socket.once('close', () => resolve(failure));
    socket.connect({ host: isIPv6(localAddress) ? multicast.ipv6 : multicast.ipv4, port, localAddress, localPort: port });
  });
}
