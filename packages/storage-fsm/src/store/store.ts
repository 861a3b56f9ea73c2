import type { LogIndex } from '@transitd/raft-core';
import { Refusal } from '../errors.ts';
import type { Command, Transaction } from './transaction.ts';

/** A record and its revision: the index of the log entry that last wrote it, or the index that came with it from another cluster. */
export interface StoredRecord {
  readonly value: Uint8Array;
  readonly revision: LogIndex;
}

/** Records whose path starts with `prefix`, ascending by the bytes of the path, beginning after the path `after`. */
export interface RangeQuery {
  readonly prefix: string;
  readonly after?: string;
  /** Maximum number of records; a page may hold fewer even when more follow. */
  readonly limit?: number;
}

export interface RangePage {
  readonly records: readonly (StoredRecord & { readonly path: string })[];
  /** The value to pass as `after` to read the next page; absent on the last page. */
  readonly next?: string;
}

/** The paths of a page, without the records. */
export interface PathPage {
  readonly paths: readonly string[];
  /** As in {@link RangePage}. */
  readonly next?: string;
}

/** `conflict`: a condition no longer held and nothing was written. */
export interface CommitResult {
  readonly outcome: 'committed' | 'conflict';
  /** The log entry's index on this cluster. */
  readonly index: LogIndex;
  /** The revision of the records that the entry wrote. It is above the index on a cluster that was promoted. */
  readonly revision: LogIndex;
}

/** The log entry at `revision` wrote one record, or deleted it if `deleted` is set. */
export interface Change {
  readonly path: string;
  readonly revision: LogIndex;
  readonly deleted: boolean;
}

/**
 * A notification to watchers: the records that one entry changed, or `everything` when a snapshot or a restore replaced the whole state.
 * Any record may then have been added, changed or deleted, so every cached value is stale.
 */
export type Changes = readonly Change[] | 'everything';

/**
 * Why a store refuses. `outcome_unknown`: the write may still take effect, so it must not be proposed again. With any other code, nothing
 * was changed.
 */
export type StoreErrorCode =
  | 'not_leader'
  | 'busy'
  | 'disk_low'
  | 'fenced'
  | 'too_large'
  | 'outcome_unknown'
  | 'sealed'
  | 'stopped';

export class StoreError extends Refusal<StoreErrorCode> {}

/**
 * The replicated records as their users see them. Paths are `/`-separated UTF-8 of at most 1,024 bytes, without empty segments.
 * The barrier uses this interface for ciphertext and offers it for plaintext.
 */
export interface Store {
  /**
   * Reads this node's applied state, which includes every commit that has resolved on this node. The returned bytes, here and from `range`,
   * belong to the reader: nobody else holds them, and a reader of secrets wipes them after use.
   */
  get(path: string): Promise<StoredRecord | undefined>;
  range(query: RangeQuery): Promise<RangePage>;
  /** Reads the paths that `range` would return records of. Reads and decrypts no values, so a path alone proves nothing. */
  paths(query: RangeQuery): Promise<PathPage>;
  /**
   * Resolves after the entry was applied on this node. Either all conditions held and all writes took effect, or nothing changed. Once the
   * promise has settled, no reference to the values is kept: the caller may wipe them.
   * @throws StoreError
   */
  commit(transaction: Transaction): Promise<CommitResult>;
  /**
   * Calls `listener` when applied entries change records below `prefix`, once for all entries that are applied together, and whenever the
   * whole state is replaced. The call is part of applying: no read sees the new state before it, and no commit resolves before it.
   * @returns a function that ends the watch
   */
  watch(prefix: string, listener: (changes: Changes) => void): () => void;
}

/** The status of consensus and of the store on this node. */
export interface ReplicaStatus {
  readonly clusterId: string;
  readonly nodeId: number;
  readonly role: 'follower' | 'precandidate' | 'candidate' | 'leader' | 'faulty';
  /** True once this node has applied an entry of its own term as leader: only then may it answer as the active node. */
  readonly ready: boolean;
  readonly term: number;
  /** The leader's node id; 0 if unknown. */
  readonly leader: number;
  readonly lastIndex: LogIndex;
  readonly commitIndex: LogIndex;
  readonly appliedIndex: LogIndex;
  readonly flushedIndex: LogIndex;
  /**
   * Number of values in all applied entries, including conflicting ones. It is equal on all nodes at the same index. The barrier uses this
   * count to limit the use of its key.
   */
  readonly valuesWritten: number;
  /** True while the free space of the data disk is below its reserve: proposals are refused with `disk_low`. */
  readonly diskLow: boolean;
}

/** The interface between a node's consensus and everything above it; in-process, or over a channel for worker processes. */
export interface Replica extends Store {
  /** As for a transaction. Steps of a restore and of replication work on records as they are stored. */
  commit(command: Command): Promise<CommitResult>;
  /** Resolves when this node has applied every write that any node acknowledged before the call. @throws StoreError */
  fresh(): Promise<void>;
  status(): ReplicaStatus;
}
