// How many threads and client connections this machine allows.
import { availableParallelism, totalmem } from 'node:os';
import type { Config } from '@transitd/configuration';
import type { Logger } from '@transitd/process';
import { type ConnectionSharing, clientConnectionsMax, fittingConnections, openFilesMax } from './descriptors.ts';
import { gatewayThreads } from './gateways/thread-count.ts';

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
