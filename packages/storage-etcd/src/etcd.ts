/**
 * A key with its value, as etcd keeps it. `createRevision` is the revision that created it, `modRevision` the one that last wrote it;
 * `version` counts the writes since its creation.
 */
export interface EtcdRow {
  readonly key: string;
  readonly value: Uint8Array;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
}

export interface EtcdRangeRequest {
  readonly key: string;
  /** The exclusive end; without it only `key` is read. */
  readonly end?: string;
  readonly limit?: number;
  /** Reads the keys as they were at this revision. */
  readonly revision?: number;
}

export interface EtcdRangeAnswer {
  /** The present one, also if the request names an earlier one. */
  readonly revision: number;
  readonly rows: readonly EtcdRow[];
  readonly more: boolean;
}

/** Holds while the key has this revision; 0 means that it is absent. */
export interface EtcdCompare {
  readonly key: string;
  readonly modRevision: number;
}

export type EtcdOperation =
  | { readonly kind: 'range'; readonly key: string }
  | { readonly kind: 'put'; readonly key: string; readonly value: Uint8Array; readonly lease?: bigint }
  | { readonly kind: 'delete'; readonly key: string; readonly end?: string }
  | { readonly kind: 'txn'; readonly txn: EtcdTxn };

/** All operations of one branch take effect at one revision, or none. */
export interface EtcdTxn {
  readonly compares: readonly EtcdCompare[];
  readonly success: readonly EtcdOperation[];
  readonly failure: readonly EtcdOperation[];
  /** Whether it does no harm when etcd executes it twice, or late. */
  readonly mayRepeat?: boolean;
}

export interface EtcdTxnAnswer {
  /** Of the store after the transaction. */
  readonly revision: number;
  readonly succeeded: boolean;
  readonly answers: readonly EtcdOperationAnswer[];
}

/** `rows` of a range, `txn` of a nested transaction. */
export interface EtcdOperationAnswer {
  readonly rows?: readonly EtcdRow[];
  readonly txn?: { readonly succeeded: boolean };
}

export interface EtcdEvent {
  readonly deleted: boolean;
  /** For a deletion, only the key and the revision have a meaning. */
  readonly row: EtcdRow;
}

/** A message of a watch. `fragment`: more fragments of the same message follow, and its last revision may be incomplete. */
export type EtcdWatchMessage =
  | { readonly kind: 'created'; readonly revision: number }
  | { readonly kind: 'canceled'; readonly compactRevision: number; readonly reason: string }
  | { readonly kind: 'events'; readonly fragment: boolean; readonly events: readonly EtcdEvent[] };

export interface EtcdWatchRequest {
  readonly key: string;
  readonly end: string;
  readonly startRevision: number;
}

/**
 * The part of etcd that a replica uses. Keys are text, because paths of records are. No call is repeated by an implementation once etcd may
 * have seen it, except reads, renewals and grants of leases, and transactions that say so.
 * @throws EtcdError from every call
 */
export interface Etcd {
  /** Linearizable, unless a revision is named. */
  range(request: EtcdRangeRequest): Promise<EtcdRangeAnswer>;
  txn(txn: EtcdTxn): Promise<EtcdTxnAnswer>;
  /** Ends with an error when the connection ends, and silently when `signal` is aborted. */
  watch(request: EtcdWatchRequest, signal: AbortSignal): AsyncIterable<EtcdWatchMessage>;
  grantLease(ttlSeconds: number): Promise<{ readonly id: bigint; readonly ttlSeconds: number }>;
  /** Returns the new time to live, or 0 if the lease has ended. */
  keepAlive(id: bigint): Promise<number>;
  revokeLease(id: bigint): Promise<void>;
  close(): void;
}

/**
 * `refused`: etcd answered that it did nothing. `unknown`: nobody knows whether etcd did it, or will do it later.
 * `compacted`: the revision is no longer, or not yet, in etcd's history; nothing was done. `too_large`: only for a range, whose answer is
 * longer than {@link answerBytesMax}; ask for fewer rows.
 */
export type EtcdErrorKind = 'refused' | 'unknown' | 'compacted' | 'too_large';

/**
 * Most bytes of the answer to a range. etcd limits an answer by rows only, and a row may have a megabyte. An answer of many megabytes would
 * exceed the deadline of a call, and hold up the event loop while it is decoded.
 */
export const answerBytesMax = 4 * 1024 * 1024;

export class EtcdError extends Error {
  override readonly name = 'EtcdError';
  readonly kind: EtcdErrorKind;
  constructor(kind: EtcdErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
