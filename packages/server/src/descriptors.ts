import { readFileSync } from 'node:fs';
import { StartError } from '@transitd/process';

/** File descriptors reserved for the node itself: logs, tables, snapshots, audit, and the pipes and timers of the runtime. */
const nodeReserve = 128;
/** Share of the open-file limit that LevelDB may use for tables (a fifth, as in its POSIX environment). */
const tablesShare = 1 / 5;
/** Reserved for the cluster port: 512 concurrent handshakes of unknown callers, and six peers with 160 connections each. */
const clusterReserve = 512 + 6 * 160;
/** Minimum number of client connections for a useful node. */
const connectionsMin = 64;

/** Limits and numbers that decide how many connections fit. */
export interface ConnectionSharing {
  /** Limit of the process; undefined if unknown or unlimited. */
  readonly openFilesMax: number | undefined;
  /** The configured limit. */
  readonly connectionsMax: number;
  readonly clustered: boolean;
  /**
   * Number of threads that accept connections; 1 by default. A gateway may use three descriptors for one: it passes requests to the main
   * thread over a socket that has both of its ends in this process. The kernel may give gateways all connections.
   */
  readonly threads?: number;
}

/**
 * Returns how many client connections the process may accept, so that files and peers never run out of descriptors.
 * @returns at most `connectionsMax`
 * @throws StartError if too few connections would remain
 */
export function clientConnectionsMax(sharing: ConnectionSharing): number {
  const { openFilesMax, connectionsMax, clustered, threads = 1 } = sharing;
  const connections = fittingConnections(sharing);
  if (connections < Math.min(connectionsMin, connectionsMax))
    throw new StartError(
      `this process may open ${openFilesMax} files, and ${reserveOf(sharing)} are reserved for storage${clustered ? ' and peers' : ''}: raise the limit (ulimit -n, LimitNOFILE)${threads > 1 ? ofGateways : ''}`,
    );
  return connections;
}

/** Returns how many client connections fit, even if they are too few. */
export function fittingConnections(sharing: ConnectionSharing): number {
  const { openFilesMax, connectionsMax, threads = 1 } = sharing;
  if (openFilesMax === undefined) return connectionsMax;
  return Math.min(connectionsMax, Math.floor((openFilesMax - reserveOf(sharing)) / (threads > 1 ? 3 : 1)));
}

const ofGateways = ', or set workers: 0, because a connection to a gateway thread may need three files';

const reserveOf = ({ openFilesMax = 0, clustered }: ConnectionSharing): number =>
  nodeReserve + Math.ceil(openFilesMax * tablesShare) + (clustered ? clusterReserve : 0);

/** Returns the soft open-file limit in the text of `/proc/self/limits`; undefined if unlimited. Node raises it to the hard limit. */
export function openFilesIn(limits: string): number | undefined {
  const soft = /^Max open files\s+(\d+)\s/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** Returns how many files this process may open; undefined on systems other than Linux. */
export function openFilesMax(): number | undefined {
  try {
    return openFilesIn(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}
