import type { Config } from '@transitd/configuration';

/** The share of the node's limits that one thread enforces. The shares of all threads add up to the limits. */
export interface ThreadShare {
  readonly reads: number;
  /** Maximum number of queued bodies. Requests queue in the main thread only. */
  readonly waitingBodies: number;
  /** In bytes. */
  readonly bodyMemory: number;
}

/**
 * Divides the limits of the node between the main thread and its gateways. The main thread gets the remainder of each division, because it
 * serves everything that gateways pass on. It also gets enough memory for one body of the maximum size.
 * @param workers - number of gateways
 */
export function sharesOf(
  { limits, listeners }: Pick<Config, 'limits' | 'listeners'>,
  workers: number,
): { readonly main: ThreadShare; readonly gateway: ThreadShare } {
  const threads = workers + 1;
  const bodyBytesMax = Math.max(...listeners.map(({ max_request_size }) => max_request_size));
  const gateway = {
    reads: Math.floor(limits.reads / threads),
    waitingBodies: Math.floor(limits.waiting / threads),
    bodyMemory: Math.floor(Math.min(limits.body_memory / threads, (limits.body_memory - bodyBytesMax) / Math.max(1, workers))),
  };
  const main = {
    reads: limits.reads - workers * gateway.reads,
    waitingBodies: limits.waiting - workers * gateway.waitingBodies,
    bodyMemory: limits.body_memory - workers * gateway.bodyMemory,
  };
  return { main, gateway };
}
