import type { LogIndex } from '@transitd/raft-core';
import type { Transaction } from './transaction.ts';

/** A record and the index of the entry that last wrote it. */
export interface StoredRecord {
  readonly value: Uint8Array;
  readonly revision: LogIndex;
}

/** Records whose path starts with `prefix`, ascending by the bytes of the path, beginning after the path `after`. */
export interface RangeQuery {
  readonly prefix: string;
  readonly after?: string;
  /** Records at most; the answer may hold fewer even when more follow. */
  readonly limit?: number;
}

export interface RangePage {
  readonly records: readonly (StoredRecord & { readonly path: string })[];
  /** Give it as `after` to read on; absent after the last page. */
  readonly next?: string;
}

/** `conflict`: a condition no longer held and nothing was written. `index` is the entry's place in the log. */
export type CommitResult = { readonly outcome: 'committed' | 'conflict'; readonly index: LogIndex };

/** One record was written (or `deleted`) by the entry at `revision`. */
export interface Change {
  readonly path: string;
  readonly revision: LogIndex;
  readonly deleted: boolean;
}

/**
 * What a watcher hears: the records that one entry changed, or `everything` when another state took the place of this one as a
 * whole (a snapshot, a restore): any record may then have changed, come or gone, and nothing kept from before holds.
 */
export type Changes = readonly Change[] | 'everything';

/**
 * Why a store refuses. `outcome_unknown`: the write may still take effect, so it is never proposed again.
 * Everything else certainly changed nothing.
 */
export type StoreErrorCode = 'not_leader' | 'busy' | 'disk_low' | 'too_large' | 'outcome_unknown' | 'sealed' | 'stopped';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;
  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * The replicated records as their users see them. Paths are `/`-separated UTF-8 of at most 1,024 bytes, without empty segments.
 * The same interface lies under the barrier (ciphertext) and above it (plaintext).
 */
export interface Store {
  /**
   * This node's own applied state, the writes of answered commits on this node included. The bytes are the reader's own, here as
   * in a range: nobody else holds them, and a reader of secrets wipes them after use.
   */
  get(path: string): Promise<StoredRecord | undefined>;
  range(query: RangeQuery): Promise<RangePage>;
  /**
   * Resolves after the local apply. All conditions held and all writes are in force, or nothing changed. No reference to the
   * values is kept once it has settled, however that ends: whoever made them may wipe them.
   * @throws StoreError
   */
  commit(transaction: Transaction): Promise<CommitResult>;
  /**
   * Calls `listener` for every applied entry that touches `prefix`, and for everything that replaces the state as a whole, within
   * the apply: before any later read can see the new state and before the commit is answered. Returns the function that ends it.
   */
  watch(prefix: string, listener: (changes: Changes) => void): () => void;
}

/** What this node knows of consensus and of its own store. */
export interface ReplicaStatus {
  readonly clusterId: string;
  readonly nodeId: number;
  readonly role: 'follower' | 'precandidate' | 'candidate' | 'leader' | 'faulty';
  /** True once an entry of the leader's own term is applied here: only then may it answer as the active node. */
  readonly ready: boolean;
  readonly term: number;
  /** 0 while none is known. */
  readonly leader: number;
  readonly lastIndex: LogIndex;
  readonly commitIndex: LogIndex;
  readonly appliedIndex: LogIndex;
  readonly flushedIndex: LogIndex;
  /** Values ever proposed to this state machine, the same on every node at one applied index: the barrier counts its key's use by it. */
  readonly valuesWritten: number;
  /** Bytes left on the data disk fell below the reserve: proposals are refused with `disk_low`. */
  readonly diskLow: boolean;
}

/** The narrow waist between a node's consensus and everything above it; in-process here, over a channel for worker processes. */
export interface Replica extends Store {
  /** Resolves when this node's state includes everything that was acknowledged anywhere before the call. @throws StoreError */
  fresh(): Promise<void>;
  status(): ReplicaStatus;
}
