import { readFileSync } from 'node:fs';
import { StartError } from '@transitd/process';

/**
 * File descriptors that connections of clients leave to the rest of the node: its logs, tables and snapshots, the audit, the pipes and timers of
 * the runtime.
 */
const ownReserve = 128;
/** LevelDB may keep this part of the process's limit open for tables (a fifth, as its POSIX environment does). */
const tablesShare = 1 / 5;
/** On the cluster port: handshakes of strangers (512 at a time), and six peers with all the connections that a node opens to another. */
const clusterReserve = 512 + 6 * 160;
/** With fewer connections of clients than these a node is of no use. */
const connectionsMin = 64;

/**
 * How many connections of clients a process may have, so that files and peers never want for a descriptor.
 * @param openFilesMax - of the process; undefined where it is not known, or not limited
 * @param connectionsMax - as configured
 * @returns at most `connectionsMax`
 * @throws StartError when too few would be left
 */
export function connectionsWithin({
  openFilesMax,
  connectionsMax,
  clustered,
}: {
  readonly openFilesMax: number | undefined;
  readonly connectionsMax: number;
  readonly clustered: boolean;
}): number {
  if (openFilesMax === undefined) return connectionsMax;
  const reserve = ownReserve + Math.ceil(openFilesMax * tablesShare) + (clustered ? clusterReserve : 0);
  const left = openFilesMax - reserve;
  if (left < Math.min(connectionsMin, connectionsMax))
    throw new StartError(
      `this process may open ${openFilesMax} files, of which ${reserve} are kept for storage${clustered ? ' and peers' : ''}: raise the limit (ulimit -n, LimitNOFILE)`,
    );
  return Math.min(connectionsMax, left);
}

/** The soft limit of open files in the text of `/proc/self/limits`; undefined for none. Node raises it to the hard limit when it starts. */
export function openFilesIn(limits: string): number | undefined {
  const soft = /^Max open files\s+(\d+)\s/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** How many files this process may have open (Linux; elsewhere undefined). */
export function openFilesMax(): number | undefined {
  try {
    return openFilesIn(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}
