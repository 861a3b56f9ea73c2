import type { LogIndex } from '@transitd/raft-core';
import type {
  Cursor,
  EpochName,
  FeatureLevel,
  ReplicatedSnapshot,
  ReplicationState,
  ReplicationStep,
} from '@transitd/storage-fsm';
import type { PrimaryNodes } from '../stream/frame.ts';
import type { OutcomeLog } from '../stream/outcome-log.ts';

/** One connection, as the sessions use it. The transport delivers frames whole and in order, or closes. */
export interface Wire {
  /** Sends a frame; the wire owns the bytes, and wipes them. */
  send(bytes: Uint8Array): void;
  /** Bytes that were handed to `send` and not yet to the network. */
  readonly unsentBytes: number;
  /** Closes the connection. */
  end(): void;
}

/** The active node of a primary, as a session sees it. */
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
  /** Commits the end of this cluster's service, because the other epoch exists. */
  superseded(by: EpochName): Promise<void>;
  /** A secondary answered the heartbeat that was sent at `sentMs`. */
  answered(secondary: string, sentMs: number, at: EpochName): void;
  nodes(): PrimaryNodes;
}

/** The active node of a secondary, as a session sees it. */
export interface SecondaryCluster {
  /** Undefined while this node is not the active one. */
  state(): ReplicationState | undefined;
  /** The feature level of this cluster. */
  level(): FeatureLevel;
  /** The digest of this cluster's replicated records at its position, if it is known. */
  digest(at: Cursor): bigint | undefined;
  /** Takes the root key of the primary, which the cluster wipes: it is needed for the local records of the next `swap`. */
  rootKey(key: Uint8Array): void;
  /** Commits a step, a `swap` together with the local records; `unknown` also for every error. */
  propose(step: ReplicationStep): Promise<'committed' | 'conflict' | 'unknown'>;
  /** Whether a heartbeat may be answered now: under the leader lease, and while no promotion is being decided. */
  mayAnswer(): boolean;
  /** A heartbeat is being answered. */
  answered(nowMs: number): void;
  /** The primary has answered the hello of this cluster, which has a state: from now on its fence counts this secondary. */
  counted(): void;
  /** The primary told its position. */
  heard(primary: { readonly at: Cursor; readonly demoted: boolean }): void;
  /** The primary told its addresses and authorities: store them, for the next connection. */
  nodes(nodes: PrimaryNodes): void;
  /** This cluster met an epoch that excludes its own: commit the end of its service. */
  superseded(by: EpochName): Promise<void>;
}

export interface SessionLimits {
  /** Interval of `tick`. */
  readonly heartbeatMs: number;
  /** A connection on which nothing arrives for this long is closed. */
  readonly silentMsMax: number;
  /** A secondary that stages nothing of a whole state for this long is cut off: the state on disk is kept for it meanwhile. */
  readonly stallMsMax: number;
  /** A frame with several entries or records has about this many bytes at most. */
  readonly frameBytes: number;
  /** Frames with entries or records that were sent and not acknowledged. */
  readonly framesMax: number;
  /** Nothing but acknowledgements is sent while more than this is unsent. */
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
  /** Secondary only: connect again. */
  | { readonly why: 'reconnect'; readonly reason: string }
  /** Secondary only: do not connect again until an operator has looked. */
  | { readonly why: 'stop'; readonly reason: 'digest_differs' | 'primary_is_older' };
