import type { LogIndex } from '@transitd/raft-core';
import type {
  Cursor,
  Epoch,
  EpochName,
  FeatureLevel,
  ReplicatedSnapshot,
  ReplicationState,
  ReplicationStep,
} from '@transitd/storage-fsm';
import type { ReportedPosition } from '../roles/promotion.ts';
import type { PrimaryNodes } from '../stream/frame.ts';
import type { OutcomeLog } from '../stream/outcome-log.ts';

/** One connection as the two ends (sessions) use it. The transport delivers complete frames in order, or closes the connection. */
export interface Wire {
  /** Sends a frame. The wire owns the bytes from then on, and wipes them. */
  send(bytes: Uint8Array): void;
  /** Bytes that were passed to `send` but not yet to the network. */
  readonly unsentBytes: number;
  /** Closes the connection. */
  end(): void;
}

/** The cluster of a primary, as a session uses it. */
export interface PrimaryCluster {
  /** Undefined while this node is not the active one, or its cluster takes part in no replication. */
  state(): ReplicationState | undefined;
  /** The feature level of this cluster. */
  level(): FeatureLevel;
  /** The newest service index of this cluster. */
  position(): LogIndex;
  readonly outcomes: OutcomeLog;
  /** The digest of the replicated records at the present position; undefined if it is not known. */
  digest(at: LogIndex): bigint | undefined;
  /** Opens the whole replicated state, as `snapshotToSend` does; the session closes it. */
  wholeState(): Promise<ReplicatedSnapshot | undefined>;
  /** Returns a copy of the root key, which the session wipes. @throws while this node is sealed */
  rootKey(): Promise<Uint8Array>;
  /** Returns a name that no other attempt has: 1 to 64 letters, digits and hyphens. */
  newAttempt(): string;
  /** The key of the set, {@link successionKeyBytes}; undefined if this node cannot read it. */
  readonly successionKey: Uint8Array | undefined;
  /** Commits that this cluster ends its service because of the other epoch. */
  superseded(by: EpochName): Promise<void>;
  /** Called when a secondary names an epoch that would end the service of this cluster, without a proof. */
  unproven(secondary: string, epoch: EpochName): void;
  /** Called when a secondary answered the heartbeat that was sent at `sentMs`. */
  answered(secondary: string, sentMs: number, at: EpochName): void;
  /** Called when a secondary has confirmed a position, which its session shows from now on. */
  acknowledged(): void;
  nodes(): PrimaryNodes;
}

/**
 * The result of a step. `unknown`: it may still be committed. `unusable`: it was not committed, because this cluster could not unseal
 * itself with the state.
 */
export type Proposed = 'committed' | 'conflict' | 'unknown' | 'unusable';

/** The cluster of a secondary, as a session uses it. */
export interface SecondaryCluster {
  /** Undefined while this node is not the active one. */
  state(): ReplicationState | undefined;
  /** The feature level of this cluster. */
  level(): FeatureLevel;
  /** The digest of this cluster's replicated records at its position, if it is known. */
  digest(at: Cursor): bigint | undefined;
  /** Receives the root key of the primary, which encrypts the local records of the next `swap`. The cluster wipes it. */
  rootKey(key: Uint8Array): void;
  /** The primary begins to send its whole state, which has these epochs. */
  receiving(epochs: readonly Epoch[]): void;
  /** Commits a step; adds the local records to a `swap`. Any error counts as `unknown` or `unusable`. */
  propose(step: ReplicationStep): Promise<Proposed>;
  /** An operator has asked for the whole state. It is false again after the next `swap`. */
  readonly wantsWholeState: boolean;
  /** Returns whether a heartbeat may be answered now: this node must hold the leader lease, and no promotion may be waiting. */
  mayAnswer(): boolean;
  /** Called when a heartbeat is being answered. */
  answered(nowMs: number): void;
  /**
   * From now on this secondary counts: its primary has welcomed it, so that the fence and new key material wait for it, and it has
   * everything that the primary had then.
   */
  counted(): void;
  /** Called when the primary has reported its position. */
  heard(primary: ReportedPosition): void;
  /** Called when the primary has sent its addresses and authorities, which are stored for the next connection. */
  nodes(nodes: PrimaryNodes): void;
  /** As in {@link PrimaryCluster}. */
  readonly successionKey: Uint8Array | undefined;
  /** Called when this cluster met an epoch that excludes its own: commits the end of its service. */
  superseded(by: EpochName): Promise<void>;
  /** Called when the former primary names such an epoch without a proof. */
  unproven(epoch: EpochName): void;
}

export interface SessionLimits {
  /** Interval of `tick`. */
  readonly heartbeatMs: number;
  /** A connection on which nothing arrives for this long is closed. */
  readonly silentMsMax: number;
  /**
   * A secondary that stages nothing of a whole state for this long is disconnected, because the primary must keep that state on disk in the
   * meantime.
   */
  readonly stallMsMax: number;
  /** A frame with several entries or records has about this many bytes at most. */
  readonly frameBytes: number;
  /** Maximum number of frames with entries or records that were sent but not acknowledged (the window). */
  readonly framesMax: number;
  /** While more bytes than this are unsent, only acknowledgements are sent. */
  readonly unsentBytesMax: number;
}

export const sessionLimits: SessionLimits = {
  heartbeatMs: 250,
  silentMsMax: 15_000,
  stallMsMax: 60_000,
  frameBytes: 256 * 1024,
  framesMax: 16,
  unsentBytesMax: 4 * 2 ** 20,
};

/**
 * Why a session ended. `closed`: the connection was lost, or its owner closed it. `unexpected_frame`: malformed, too long, or out of order.
 * `behind`: the outcomes after the last sent one are no longer kept. `no_state`: the present state is not on disk yet, so the secondary has
 * to ask again.
 */
export type SessionEnd =
  | {
      readonly why:
        | 'closed'
        | 'silent'
        | 'unexpected_frame'
        | 'not_active'
        | 'behind'
        | 'no_state'
        | 'epoch_ended'
        | 'superseded';
    }
  | { readonly why: 'failed'; readonly error: unknown }
  | { readonly why: 'refused'; readonly reason: string }
  /** Only on a secondary: connect again. */
  | { readonly why: 'reconnect'; readonly reason: string }
  /** Only on a secondary: do not connect again until an operator has decided. */
  | { readonly why: 'stop'; readonly reason: StopReason };

/** Why a secondary does not follow its primary until an operator has looked. */
export type StopReason = 'digest_differs' | 'primary_is_older' | 'state_unusable';
