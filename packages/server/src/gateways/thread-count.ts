import type { Config } from '@transitd/configuration';

/** Largest number of gateways that `auto` starts. More were not measured. */
const automaticMax = 4;
/** Memory of one gateway under load, in bytes, and the share of the machine's memory that all of them may use. */
const gatewayBytes = 80 * 1024 * 1024;
const memoryShare = 1 / 8;

/** The machine, as far as it limits the number of gateways. */
export interface Machine {
  /** Whether the kernel spreads the connections to one address over several listeners. */
  readonly spreadsConnections: boolean;
  /** Number of cores that this process may use. */
  readonly cores: number;
  /** Memory that this process may use. */
  readonly memoryBytes: number;
  /** Returns how many client connections this number of threads may accept. */
  readonly connectionsFor: (threads: number) => number;
}

/**
 * Returns the number of gateway threads. `auto` leaves one core to the main thread, and starts only as many gateways as fit the memory,
 * get a place of `limits.reads` each, and do not lower the limit of connections.
 */
export function gatewayThreads({ workers, limits }: Pick<Config, 'workers' | 'limits'>, machine: Machine): number {
  const { spreadsConnections, cores, memoryBytes, connectionsFor } = machine;
  if (!spreadsConnections) return 0;
  if (workers !== 'auto') return workers;
  const inMemory = Math.floor((memoryBytes * memoryShare) / gatewayBytes);
  let count = Math.max(0, Math.min(cores - 1, automaticMax, inMemory, limits.reads - 1));
  while (count > 0 && connectionsFor(1 + count) < connectionsFor(1)) count -= 1;
  return count;
}
