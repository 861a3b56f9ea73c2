import type { LogIndex } from '@transitd/raft-core';
import type { Cursor, Epoch, EpochName, ReplicationState } from './replication-state.ts';
import type { Spaces } from './spaces.ts';
import type { Condition, Write } from './write.ts';

/** A replicated write with the service index of the entry that made it; a null `value` deletes the record. */
export interface ReplicatedWrite {
  readonly path: string;
  readonly value: Uint8Array | null;
  readonly revision: LogIndex;
}

/** A record of a primary's state. */
export interface ReplicatedRecord extends ReplicatedWrite {
  readonly value: Uint8Array;
}

/**
 * One step of replication; each is one log entry. A step takes effect at most once, even if it is proposed twice or by a former leader:
 * `from` names the position or the epoch that the step expects.
 */
export type ReplicationStep =
  /** Makes a cluster the primary of a new replication set. */
  | {
      readonly kind: 'establish';
      readonly set: string;
      readonly id: string;
      readonly local: readonly string[];
      readonly fenceMs?: number | undefined;
    }
  /** Makes a cluster a secondary of the set. From now on only replication changes the replicated records. */
  | {
      readonly kind: 'attach';
      readonly set: string;
      readonly local: readonly string[];
      /** That of the set. */
      readonly fenceMs?: number | undefined;
    }
  /** The outcomes after `from` up to the service index `to`: the last write of each path. No conditions are checked. */
  | {
      readonly kind: 'follow';
      readonly from: Cursor;
      readonly to: LogIndex;
      readonly writes: readonly ReplicatedWrite[];
      /** Number of values that the primary encrypted in these entries, for the limits of the barrier's keys. */
      readonly valuesWritten: number;
      /** Local records that change with it, as in a `swap`. */
      readonly local: readonly ReplicatedRecord[];
    }
  /** Continues under the epochs of a newer primary whose history contains this state. */
  | { readonly kind: 'adopt'; readonly from: Cursor; readonly epochs: readonly Epoch[] }
  /** Stages records of a primary's state where no reader sees them. Chunk 0 begins the attempt and ends any other attempt. */
  | { readonly kind: 'stage'; readonly attempt: string; readonly chunk: number; readonly records: readonly ReplicatedRecord[] }
  /** Makes the staged records the replicated state, atomically, if they have the given count and digest. Local records stay. */
  | {
      readonly kind: 'swap';
      readonly attempt: string;
      readonly records: number;
      /** Sum of the digests of the records, with their revisions. */
      readonly digest: bigint;
      /** The primary's count of values written. The present count is raised to it. */
      readonly valuesWritten: number;
      readonly epochs: readonly Epoch[];
      /** The service index of the staged state, in the last epoch. */
      readonly index: LogIndex;
      /** As in the state of the primary. */
      readonly restoredAt?: LogIndex | undefined;
      /**
       * Local records under the keyring of the new state. `revision` is that of the record which each one replaces: if one of those has
       * changed since, the step has no effect.
       */
      readonly local: readonly ReplicatedRecord[];
      /**
       * Log index of the state in which the local records were read. If another one was written since, which would stay encrypted under the
       * former keyring, the step has no effect.
       */
      readonly localReadAt: LogIndex;
    }
  /**
   * Makes the cluster the primary of a new epoch that begins at `from`. `writes` are the first replicated writes of the epoch. They can
   * contain a new keyring, so that no value of the epoch is encrypted under a key of another cluster.
   */
  | { readonly kind: 'promote'; readonly from: Cursor; readonly id: string; readonly writes: readonly Write[] }
  /**
   * Replaces the replicated records of a primary by those of a staged backup, atomically, if they have the given count and digest. Local
   * records stay. Its secondaries need the whole state after it.
   */
  | {
      readonly kind: 'restore';
      readonly from: EpochName;
      readonly attempt: string;
      readonly records: number;
      /** Sum of the digests of the records, each computed with revision 0. */
      readonly digest: bigint;
      /** The count of values written in the backup. The present count is raised to it. */
      readonly valuesWritten: number;
      /** About records of the present state, on which the writes depend. */
      readonly conditions: readonly Condition[];
      /** Records in place of those of the backup. The newest key of their keyring has encrypted nothing. */
      readonly writes: readonly Write[];
      /** As in a `swap`. */
      readonly local: readonly ReplicatedRecord[];
      readonly localReadAt: LogIndex;
    }
  | { readonly kind: 'demote'; readonly from: EpochName }
  /**
   * Ends replication on a secondary that has a state, which remains: the cluster serves it from now on, as one of its own. `writes` are as
   * in a promotion.
   */
  | { readonly kind: 'leave'; readonly from: Cursor; readonly writes: readonly Write[] }
  /** Ends the service of this cluster because of another epoch: one with a higher number, or with the same number and another id. */
  | { readonly kind: 'supersede'; readonly by: EpochName }
  /** Ends replication on a primary, or on a secondary that has never received a state. */
  | { readonly kind: 'disable' };

/** The effect of a step of a restore or of replication: the records that it writes, by name, and other changes of the state. */
export interface StepEffect {
  /** Without a revision: with that of the entry. */
  readonly writes: readonly { readonly name: string; readonly value: Uint8Array | null; readonly revision?: LogIndex }[];
  /** Like `writes`, but by path: the caller finds the name by the spaces. */
  readonly byPath: readonly ReplicatedWrite[];
  readonly state?: ReplicationState;
  readonly spaces?: Spaces;
  /** The count of values written rises by `added`, and then at least to `atLeast`. */
  readonly valuesWritten: { readonly added: number; readonly atLeast: number };
}

export const noEffect: StepEffect = { writes: [], byPath: [], valuesWritten: { added: 0, atLeast: 0 } };

/** The state to which a step is applied, and the log index of its entry. */
export interface ReplicationPlace {
  readonly state: ReplicationState | undefined;
  readonly spaces: Spaces;
  readonly index: LogIndex;
  /** Returns the revision of a record; 0 if it is absent. */
  readonly revisionOf: (path: string) => LogIndex;
}
