import type { LogIndex } from '@transitd/raft-core';
import type { Epoch, ReplicationState, ServiceIndex } from '@transitd/storage-fsm';
import type { Engine } from '../ports/storage-port.ts';

/** A cluster, and the replication that one of its nodes has applied. */
export interface HistoryOf extends Pick<Engine, 'replication'> {
  readonly clusterId: string;
}

/**
 * How a state relates to an index that a request requires.
 * - `log`: the state contains the index as soon as this log index is applied
 * - `contained`: the state contains the index
 * - `ahead`: the index is of an epoch that this node has not applied yet, or that its cluster never will
 * - `lost`: the history of this cluster does not contain the index. A client may come from a primary that was lost, so it is answered
 * - `foreign`: the index is of another cluster, and this cluster never took part in replication
 */
export type IndexPlace =
  | { readonly kind: 'log'; readonly index: LogIndex }
  | { readonly kind: 'contained' | 'ahead' | 'lost' | 'foreign' };

const nameOf = (set: string, { number, id }: Pick<Epoch, 'number' | 'id'>): string => `${set}.${number}.${id}`;

/**
 * Returns the index that responses show for a state of this cluster. On the primary of a set it is the service index, in the present epoch:
 * other clusters of the set know it after a promotion. On any other cluster it is the log index.
 */
export function serviceIndexOf(appliedIndex: LogIndex, { clusterId, replication }: HistoryOf): ServiceIndex {
  const epoch = replication?.epochs.at(-1);
  if (replication?.role !== 'primary' || epoch === undefined) return { history: clusterId, index: appliedIndex };
  return { history: nameOf(replication.set, epoch), index: appliedIndex + replication.offset };
}

/** Returns where an index is in the history of a cluster. */
export function placeOf({ history, index }: ServiceIndex, { clusterId, replication }: HistoryOf): IndexPlace {
  if (history === clusterId) return { kind: 'log', index };
  if (replication === undefined) return { kind: 'foreign' };
  const { role, set, epochs, offset } = replication;
  if (role === 'disabled') return { kind: 'lost' };
  // The operations of a cluster that serves no clients concern the cluster itself, not the replicated records.
  if (role !== 'primary') return { kind: 'contained' };
  const at = epochs.findIndex((epoch) => nameOf(set, epoch) === history);
  const next = epochs[at + 1];
  if (at < 0) return { kind: isLater(history, replication) ? 'ahead' : 'lost' };
  if (next === undefined) return { kind: 'log', index: index - offset };
  return { kind: index <= next.start ? 'contained' : 'lost' };
}

/** Returns whether a history names an epoch of the set that is later than the present one. */
function isLater(history: string, { set, epochs }: ReplicationState): boolean {
  const [ofSet, number] = history.split('.');
  return ofSet === set && Number(number) > (epochs.at(-1)?.number ?? 0);
}
