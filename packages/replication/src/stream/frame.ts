import type { LogIndex } from '@transitd/raft-core';
import type { Cursor, Epoch, EpochName, FeatureLevel, ReplicatedRecord } from '@transitd/storage-fsm';
import type { Outcome } from './outcome.ts';

/** The messages between the active nodes of two clusters of a replication set. */
export type Frame =
  /**
   * Secondary → primary, the first frame on a connection. `cursor` is undefined if the secondary has no state. A secondary with a state
   * always sends its cursor, also when it asks for the whole state again, because the cursor may show this primary a later epoch, which
   * `proof` proves. `level` is the feature level of the secondary. A primary at a higher level refuses the hello: the secondary may be
   * unable to read its records.
   */
  | {
      readonly kind: 'hello';
      readonly set: string;
      readonly cursor: Cursor | undefined;
      readonly wantsWholeState: boolean;
      readonly level: FeatureLevel;
      readonly proof?: string | undefined;
    }
  /** Primary → secondary: the stream continues at the cursor of the hello. */
  | { readonly kind: 'welcome'; readonly epochs: readonly Epoch[] }
  /** Primary → secondary: the whole state follows. */
  | {
      readonly kind: 'state';
      readonly attempt: string;
      readonly epochs: readonly Epoch[];
      readonly index: LogIndex;
      readonly valuesWritten: number;
      /** As in the state of the primary. */
      readonly restoredAt?: LogIndex | undefined;
    }
  | { readonly kind: 'records'; readonly attempt: string; readonly chunk: number; readonly records: readonly ReplicatedRecord[] }
  /** Secondary → primary: the records up to this chunk are staged. */
  | { readonly kind: 'staged'; readonly attempt: string; readonly chunk: number }
  | { readonly kind: 'end'; readonly attempt: string; readonly records: number; readonly digest: bigint }
  | ({ readonly kind: 'outcome'; readonly epoch: EpochName } & Outcome)
  /** Primary → secondary: the digest of the replicated records at a position. */
  | { readonly kind: 'checkpoint'; readonly at: Cursor; readonly digest: bigint }
  /**
   * Primary → secondary. `demoted`: the cluster accepts no more writes, and `at` is its last position. A secondary before `restoredAt` has
   * the records that a backup has replaced at the primary.
   */
  | {
      readonly kind: 'heartbeat';
      readonly at: Cursor;
      readonly sentMs: number;
      readonly demoted: boolean;
      readonly restoredAt?: LogIndex | undefined;
    }
  /**
   * Secondary → primary: applied up to `at`, which is undefined before the first state; `echoMs` is the `sentMs` of the newest heartbeat,
   * by the primary's clock.
   */
  | { readonly kind: 'ack'; readonly at: Cursor | undefined; readonly echoMs: number | undefined }
  /** Primary → secondary: the addresses of its nodes, and the authorities (PEM) that sign their certificates. */
  | ({ readonly kind: 'nodes' } & PrimaryNodes)
  /** Primary → secondary, before the records of a state: the root key that opens the keyring in them, {@link rootKeyBytes}. */
  | { readonly kind: 'key'; readonly rootKey: Uint8Array }
  /** In both directions, between clusters that may both act as primary. */
  | { readonly kind: 'announce'; readonly set: string; readonly epoch: EpochName; readonly proof?: string | undefined }
  /** Primary → secondary: why the hello is not answered. */
  | { readonly kind: 'refusal'; readonly reason: HelloRefusal };

export interface PrimaryNodes {
  /** Addresses of the cluster ports, `host:port`. */
  readonly addresses: readonly string[];
  readonly authorities: readonly string[];
}

export const rootKeyBytes = 32;

/** Limits of a frame `nodes`: it must fit into the fields of a frame. */
export const addressesMax = 32;
export const authoritiesMax = 4;
export const authorityCharactersMax = 1536;
export const addressCharactersMax = 261;

/**
 * `level`: the feature level of the secondary is below the primary's. `unproven`: the secondary names a later epoch than the primary's
 * without a proof.
 */
export type HelloRefusal = 'other_set' | 'not_primary' | 'superseded' | 'level' | 'unproven';
