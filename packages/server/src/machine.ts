// How many threads and client connections this machine allows.
import { availableParallelism, totalmem } from 'node:os';
import type { Config } from '@transitd/configuration';
import type { Logger } from '@transitd/process';
import { type ConnectionSharing, clientConnectionsMax, fittingConnections, openFilesMax } from './descriptors.ts';

/** Returns the number of gateway threads on this machine; logs the number that `auto` chose. */
export function workersHere(config: Config, log: Logger): number {
  const sharing = sharingOf(config, openFilesMax());
  const count = gatewayThreads(config, {
    spreadsConnections: process.platform === 'linux',
    cores: availableParallelism(),
    memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
    connectionsFor: (threads) => fittingConnections({ ...sharing, threads }),
  });
  if (config.workers === 'auto') log.info({ workers: count }, 'chose the number of gateway threads');
  else if (count < config.workers) log.warn('workers: ignored, because this system does not spread connections over threads');
  return count;
}

/** Returns the connection limit over all listeners and threads; warns if the open-file limit lowers it. @throws StartError */
export function connectionsMaxHere(config: Config, log: Logger, threads: number): number {
  const openFiles = openFilesMax();
  const configured = config.limits.connections;
  const connections = clientConnectionsMax({ ...sharingOf(config, openFiles), threads });
  if (connections < configured)
    log.warn(
      { openFiles, configured, connections },
      'limits.connections was lowered: the open-file limit is too low (raise ulimit -n, LimitNOFILE)',
    );
  return connections;
}

const sharingOf = ({ limits, cluster_addr }: Config, openFiles: number | undefined): ConnectionSharing => ({
  openFilesMax: openFiles,
  connectionsMax: limits.connections,
  clustered: cluster_addr !== undefined,
});

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
