import type { Entry, HardState, LogIndex, NodeId, Role, SnapshotMeta, Term } from '../types.ts';

/** Why the core takes a proposal or a read no further; it certainly had no effect. */
export type CoreRefusal = 'notLeader' | 'busy' | 'tooLarge' | 'faulty';

export type ProposeResult =
  | { readonly accepted: true; readonly index: LogIndex; readonly term: Term }
  | { readonly accepted: false; readonly reason: CoreRefusal };

/** The read `ctx` is linearizable once everything up to `index` is applied here. */
export interface ReadResult {
  readonly ctx: number;
  readonly index: LogIndex;
}

/** One batch of effects, handed over once. The driver carries them out in the order of the fields. */
export interface Ready {
  /** Increasing; `persisted(seq)` acknowledges this batch and all before it. */
  readonly seq: number;
  /** Commit index, when newer than any handed over before: a hint for the next start, stored when it costs nothing. */
  readonly commitHint?: LogIndex;
  /** Present when term or vote changed: durable before the entries of this batch are. */
  readonly hardState?: HardState;
  /** To be stored, contiguous. */
  readonly entries: readonly Entry[];
  /** To be applied in order; stable on this node, bounded in bytes. */
  readonly committed: readonly Entry[];
  /** Committed entries that are no longer in memory, to be read and given to `logRead`; one request at a time. */
  readonly readLog?: { readonly lo: LogIndex; readonly hi: LogIndex };
  readonly reads: readonly ReadResult[];
}

export interface Status {
  readonly role: Role;
  readonly term: Term;
  /** 0 while none is known. */
  readonly leader: NodeId;
  readonly baseIndex: LogIndex;
  readonly lastIndex: LogIndex;
  readonly stableIndex: LogIndex;
  readonly commitIndex: LogIndex;
  /** What `applied` reported: durable in the state machine. */
  readonly appliedIndex: LogIndex;
  /** The no-op that opened this leader's term; absent in other roles. */
  readonly termStartIndex?: LogIndex;
}

/**
 * The consensus of one node as a state machine: calls go in, `ready()` gives what is to be done about them. It does no I/O,
 * reads no clock and draws no randomness, so equal calls give equal outputs, byte for byte.
 */
export interface RaftCore {
  /** Evaluates deadlines; `nowMs` is the node's monotonic clock. */
  tick(nowMs: number): void;
  /** Keeps `data`, which must not change afterwards. */
  propose(data: Uint8Array): ProposeResult;
  /** Asks for a point in the log that a read may rely on; answered in `Ready.reads` under `ctx`, or refused at once. */
  readIndex(ctx: number): CoreRefusal | undefined;

  hasReady(): boolean;
  ready(): Ready;

  /** Everything handed out to be written up to the batch `seq` is durable. */
  persisted(seq: number): void;
  /** The state machine holds everything up to `index` durably. */
  applied(index: LogIndex): void;
  /** Answers `Ready.readLog`: entries from its `lo` on, at least one. */
  logRead(entries: readonly Entry[]): void;
  /** The log now begins after `base`. */
  compacted(base: SnapshotMeta): void;
  /** A write or read failed. The role becomes `faulty` for good: nothing is accepted, handed out or acknowledged any more. */
  storageFailed(): void;

  /** What a snapshot of the state at `index` is described by. The log must still reach back to it. */
  snapshotMeta(index: LogIndex): SnapshotMeta;
  status(): Status;
  /** Checks every rule that one node can check of itself; reads all entries in memory. @throws InvariantViolation */
  checkInvariants(): void;
}
