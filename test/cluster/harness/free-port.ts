import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the system's range for outgoing connections, so that a node that is down finds its port free again. */
const lowest = 15_000;
const highest = 32_000;

const isFree = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ host, port }, () => probe.close(() => resolve(true)));
  });

/** Returns a free port at this address: the wanted one, or any. @throws if no port is free */
export async function freePort(host: string, wanted?: number): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = wanted ?? randomInt(lowest, highest);
    if (await isFree(host, port)) return port;
    if (wanted !== undefined) break;
  }
  throw new Error(`no free port at ${host}`);
}
