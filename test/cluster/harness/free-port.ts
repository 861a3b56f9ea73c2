import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the system's range for outgoing connections, so that a node that is down finds its port free again. */
const lowest = 15_000;
const highest = 32_000;
/**
 * A process of tests listens here at each port that it has taken, until it ends. So no other one takes the port before a node listens at
 * it, or while that node is down.
 */
const reserveHost = '127.255.255.254';

/** Returns whether a server can listen there. */
export const isFree = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ host, port }, () => probe.close(() => resolve(true)));
  });

/** Takes a port for this process. Returns whether no other process had it. */
async function reserve(port: number): Promise<boolean> {
  const reserved = createServer().unref();
  return once(reserved.listen({ host: reserveHost, port, exclusive: true }), 'listening').then(
    () => true,
    () => false,
  );
}

/** Returns a free port at this address, for this process alone: the wanted one, or any. @throws if no port is free */
export async function freePort(host: string, wanted?: number): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = wanted ?? randomInt(lowest, highest);
    if ((await reserve(port)) && (await isFree(host, port))) return port;
    if (wanted !== undefined) break;
  }
  throw new Error(`no free port at ${host}`);
}
