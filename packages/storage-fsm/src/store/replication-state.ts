import { CodecError, type LogIndex } from '@transitd/raft-core';
import { decodeFields, fieldsIn } from './json-object.ts';

/*
 * The part of the state that disaster-recovery replication needs on every node. Two clusters have different logs, so a record that is
 * replicated between them needs an index that both know: its *service index*. On a primary it is the log index plus an offset; on a
 * secondary it is the index that came with the record. A promotion raises the offset, so that service indexes never go back.
 */

/** An index in one history of states. */
export interface ServiceIndex {
  /** Names the log of a cluster, or an epoch of a replication set. Indexes of different histories cannot be compared. */
  readonly history: string;
  readonly index: number;
}

/** The name of an epoch: two epochs with the same number and different ids are two primaries. */
export interface EpochName {
  readonly number: number;
  /** 32 hexadecimal digits, random. */
  readonly id: string;
}

/** The time during which one cluster is the primary. */
export interface Epoch extends EpochName {
  /** The service index up to which the records of the previous epoch belong to this history. */
  readonly start: LogIndex;
}

/** A position in the replicated history: a state with all outcomes up to `index`, of which the last ones belong to the epoch. */
export interface Cursor extends EpochName {
  readonly index: LogIndex;
}

/**
 * `primary`: accepts writes. `demoted`: was the primary, and accepts no writes until it is promoted or follows another cluster.
 * `secondary`: follows a primary. `superseded`: met an epoch that excludes its own, and serves nothing until an operator decides.
 * `disabled`: took part in replication before, but no longer does.
 */
export type ReplicationRole = 'primary' | 'demoted' | 'secondary' | 'superseded' | 'disabled';

export interface ReplicationState {
  readonly role: ReplicationRole;
  /** The id of the replication set, 32 hexadecimal digits; the same on all its clusters. */
  readonly set: string;
  /** Prefixes of the paths that stay local; all other paths are replicated. */
  readonly local: readonly string[];
  /** Oldest first; the last one is the current epoch. Empty on a secondary that has never received a state. */
  readonly epochs: readonly Epoch[];
  /**
   * The newest service index of the current epoch that this state contains. On a primary it is the index at which the cluster became the
   * primary.
   */
  readonly index: LogIndex;
  /** The service index of a local log entry is its log index plus this offset. It never falls. */
  readonly offset: LogIndex;
  /** The highest epoch number that this cluster has met. */
  readonly seen: number;
  /** A primary without contact to a secondary for this many milliseconds accepts no writes; the same on all clusters. Absent: off. */
  readonly fenceMs?: number;
  /**
   * Service index at which a backup last replaced the replicated records. A state of this history at a lower index has the records from
   * before. Absent: never in this set, as far as this state knows.
   */
  readonly restoredAt?: LogIndex;
}

/** Number of epochs that are kept. A cluster that missed more epochs receives the whole state. */
export const epochsMax = 16;

/** Name of the record that stores this state. No path begins with a control character, so no path has this name. */
export const replicationName = '\u0001replication';

export const isEpochId = (id: string): boolean => /^[0-9a-f]{32}$/.test(id);
export const sameEpoch = (a: EpochName, b: EpochName): boolean => a.number === b.number && a.id === b.id;

/** Returns whether the record at the path is local, that is, not replicated. */
export const isLocal = ({ local }: Pick<ReplicationState, 'local'>, path: string): boolean =>
  local.some((prefix) => path.startsWith(prefix));

/** Returns whether a cluster in this state is in a replication set, in any role. */
export const takesPart = (state: Pick<ReplicationState, 'role'> | undefined): boolean =>
  (state?.role ?? 'disabled') !== 'disabled';

/** Returns whether a cluster in this state may change replicated records. A cluster that may not do so serves no clients either. */
export const acceptsWrites = (state: ReplicationState | undefined): boolean =>
  state === undefined || state.role === 'primary' || state.role === 'disabled';

/** Returns whether a transaction of this cluster may write the path. */
export const mayWrite = (state: ReplicationState | undefined, path: string): boolean =>
  acceptsWrites(state) || (state !== undefined && isLocal(state, path));

/** Returns the service index of a state: on a primary the index of its newest entry, otherwise the index of the newest outcome. */
export const positionOf = ({ role, offset, index }: ReplicationState, appliedIndex: LogIndex): LogIndex =>
  role === 'primary' ? appliedIndex + offset : index;

/** Returns the position of a cluster that is not the primary; undefined before it has received a state. */
export function cursorOf({ epochs, index }: Pick<ReplicationState, 'epochs' | 'index'>): Cursor | undefined {
  const last = epochs.at(-1);
  return last && { number: last.number, id: last.id, index };
}

/**
 * Returns whether a state at the cursor belongs to the history with these epochs. It does if the cursor's epoch is one of them and the
 * cursor is not after the start of the next epoch.
 */
export function continues(epochs: readonly Epoch[], cursor: Cursor): boolean {
  const at = epochs.findIndex((epoch) => sameEpoch(epoch, cursor));
  const next = epochs[at + 1];
  return at >= 0 && (next === undefined || cursor.index <= next.start);
}

/**
 * Returns why a list of epochs is not a valid history, or undefined if it is. In a history, the numbers rise, and no epoch begins before
 * its predecessor.
 */
export function epochsFault(epochs: readonly Epoch[]): string | undefined {
  if (epochs.length > epochsMax) return `a history has more than ${epochsMax} epochs`;
  for (const [at, { number, id, start }] of epochs.entries()) {
    const before = epochs[at - 1];
    if (!isIndex(number) || number === 0 || !isIndex(start) || !isEpochId(id)) return 'an epoch is malformed';
    if (before !== undefined && (number <= before.number || start < before.start))
      return 'the epochs of a history are not in order';
  }
  return undefined;
}

/** Returns whether the number can be a service index: a whole number of 48 bits. */
export const isIndex = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 48;

/**
 * Returns whether another cluster or a backup may bring the number: a service index, the number of an epoch, or a count of values written.
 * Such numbers stay in the lower half of the range, so that a cluster that has stored one can always be promoted, and can write and count
 * above it.
 */
export const isForeignIndex = (value: unknown): value is number => isIndex(value) && value < 2 ** 47;

/** Returns whether these can be the local prefixes of a state: at most 64 of at most 128 characters. */
export const areLocalPrefixes = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.length <= 64 &&
  value.every((prefix) => typeof prefix === 'string' && prefix !== '' && prefix.length <= 128 && prefix.isWellFormed());

/** Returns whether the value can be `fenceMs`. */
export const isFence = (value: unknown): boolean => value === undefined || (isIndex(value) && value > 0);

const format = 1;
const roles: readonly unknown[] = ['primary', 'demoted', 'secondary', 'superseded', 'disabled'];

/** Returns whether the fields are a state that can be stored: what is written is read again. */
export const isReplicationState = (fields: { readonly [Name in keyof ReplicationState]?: unknown }): boolean => {
  const { role, set, local, epochs, index, offset, seen, fenceMs, restoredAt } = fields;
  return (
    roles.includes(role) &&
    typeof set === 'string' &&
    isEpochId(set) &&
    areLocalPrefixes(local) &&
    Array.isArray(epochs) &&
    epochs.every((epoch) => typeof epoch === 'object' && epoch !== null && typeof epoch.id === 'string') &&
    epochsFault(epochs) === undefined &&
    isIndex(index) &&
    isIndex(offset) &&
    isIndex(seen) &&
    isFence(fenceMs) &&
    (restoredAt === undefined || isIndex(restoredAt))
  );
};

/**
 * Encodes the state as versioned JSON, the same bytes on every node.
 * @throws TypeError for a state that {@link decodeReplicationState} refuses: a bug in the calling code
 */
export const encodeReplicationState = (state: ReplicationState): Buffer => {
  if (!isReplicationState(state)) throw new TypeError('the replication state cannot be stored');
  const { role, set, local, epochs, index, offset, seen, fenceMs, restoredAt } = state;
  return Buffer.from(
    JSON.stringify({
      format,
      role,
      set,
      local,
      epochs: epochs.map(({ number, id, start }) => ({ number, id, start })),
      index,
      offset,
      seen,
      fenceMs, // JSON has no undefined fields: without a fence the record is as it was
      restoredAt,
    }),
  );
};

/**
 * Returns the state for a recovery, which must not depend on it. A record that {@link decodeReplicationState} refuses counts as that of a
 * cluster that has left its set. Such a cluster accepts writes, so no entry that follows in the log is lost; the offset remains, so their
 * conditions on revisions hold as before.
 */
export function recoveredReplicationState(bytes: Uint8Array): ReplicationState {
  const fault = replicationRecordFault(bytes);
  if (fault === undefined) return decodeReplicationState(bytes);
  const { set, offset } = fieldsIn(bytes);
  return {
    ...{ role: 'disabled', local: [], epochs: [], index: 0, seen: 0 },
    set: typeof set === 'string' && isEpochId(set) ? set : '0'.repeat(32),
    offset: isIndex(offset) ? offset : 0,
  };
}

/** Returns why {@link decodeReplicationState} refuses the record; undefined if it does not. */
export function replicationRecordFault(bytes: Uint8Array): string | undefined {
  try {
    decodeReplicationState(bytes);
    return undefined;
  } catch (error) {
    if (error instanceof CodecError) return error.message;
    throw error;
  }
}

/** Decodes the state. @throws CodecError for any bytes that {@link encodeReplicationState} does not write */
export function decodeReplicationState(bytes: Uint8Array): ReplicationState {
  const stored = decodeFields(bytes, 'the replication record');
  if (stored['format'] !== format) throw new CodecError('the replication record has an unknown format');
  const { role, set, local, epochs, index, offset, seen, fenceMs, restoredAt } = stored;
  const optional = { ...(fenceMs !== undefined && { fenceMs }), ...(restoredAt !== undefined && { restoredAt }) };
  const state = { role, set, local, epochs, index, offset, seen, ...optional };
  if (!isReplicationState(state)) throw new CodecError('the replication record is malformed');
  return state as ReplicationState;
}
