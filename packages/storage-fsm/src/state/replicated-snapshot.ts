import type { LogIndex } from '@transitd/raft-core';
import {
  decodeReplicationState,
  isLocal,
  positionOf,
  type ReplicationState,
  replicationName,
} from '../store/replication-state.ts';
import type { ReplicatedRecord } from '../store/replication-step.ts';
import { decodeSpaces, nameOf, noSpaces, spacesName, visiblePath } from '../store/spaces.ts';
import type { StoredRecord } from '../store/store.ts';
import type { StateSnapshot } from './state-store.ts';

/** The replicated records at one position, unaffected by later writes. Holds disk space until it is closed. */
export interface ReplicatedSnapshot {
  readonly state: ReplicationState;
  /** The service index of these records. */
  readonly index: LogIndex;
  readonly valuesWritten: number;
  /** Returns a local or replicated record as of the moment of the snapshot. */
  get(path: string): StoredRecord | undefined;
  /** Yields the replicated records by path. A page may be empty. */
  pages(): AsyncGenerator<readonly ReplicatedRecord[]>;
  close(): Promise<void>;
}

/**
 * Returns the part of a snapshot that is replicated to other clusters. Closes the snapshot and returns undefined if it has no replication
 * state.
 */
export function replicatedSnapshot(snapshot: StateSnapshot): ReplicatedSnapshot | undefined {
  try {
    const stored = snapshot.read(replicationName);
    if (stored === undefined) {
      void snapshot.close();
      return undefined;
    }
    const state = decodeReplicationState(stored.value);
    const routes = snapshot.read(spacesName);
    const spaces = routes === undefined ? noSpaces : decodeSpaces(routes.value);
    const { appliedIndex, valuesWritten } = snapshot.meta;
    async function* pages(): AsyncGenerator<readonly ReplicatedRecord[]> {
      for await (const rows of snapshot.pages())
        yield rows.flatMap(({ path: name, value, revision }) => {
          const path = visiblePath(spaces, name);
          return path === undefined || isLocal(state, path) ? [] : [{ path, value, revision }];
        });
    }
    return {
      ...{ state, index: positionOf(state, appliedIndex), valuesWritten, pages },
      get: (path) => snapshot.read(nameOf(spaces, path)),
      close: () => snapshot.close(),
    };
  } catch (error) {
    void snapshot.close();
    throw error;
  }
}
