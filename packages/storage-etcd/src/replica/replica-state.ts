import { type FeatureLevel, type Row, supportedLevels } from '@transitd/storage-fsm';
import type { Copy } from '../copy/copy.ts';

/** The records as of one commit. Their values must not be changed: the replica uses them too. */
export interface ReplicaState {
  /** Empty if there is no cluster. */
  readonly clusterId: string;
  /** Revision of the newest commit. */
  readonly index: number;
  /** 0 if no node is active. */
  readonly term: number;
  /** The feature level of the cluster. */
  readonly level: FeatureLevel;
  /** At least the number of values that were ever written. */
  readonly valuesWritten: number;
  /** Ascending by path. */
  readonly rows: readonly Row[];
}

/** Returns the records of a copy. Later changes of the copy do not change the result. */
export function stateOf(copy: Copy): ReplicaState {
  const rows: Row[] = [];
  for (const path of copy.paths({ prefix: '' })) {
    const record = copy.get(path);
    if (record !== undefined) rows.push({ path, value: record.value, revision: record.revision });
  }
  const { cluster: clusterId, marker, active, reserved: valuesWritten } = copy;
  // Nodes of an early preview wrote no level, and ran at the newest one.
  const level = copy.level.level || supportedLevels.newest;
  return { clusterId, level, index: marker.revision, term: active?.createRevision ?? 0, valuesWritten, rows };
}
