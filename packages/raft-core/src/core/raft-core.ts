import type {
  ConfChange,
  ConfState,
  Entry,
  Fitness,
  HardState,
  LogIndex,
  Message,
  NodeId,
  Role,
  SnapshotMeta,
  Term,
} from '../types.ts';

/** Why the core takes a request no further; it certainly had no effect. */
export type CoreRefusal = 'notLeader' | 'busy' | 'tooLarge' | 'transferring' | 'sealed' | 'removed' | 'faulty';

/**
 * `confPending`: an earlier change, or the first entry of this leader's term, is not committed yet. `confInvalid`: the change
 * cannot be made from the configuration in force.
 */
export type ConfRefusal = CoreRefusal | 'confPending' | 'confInvalid';

export type ProposeResult<Refusal = CoreRefusal> =
  | { readonly accepted: true; readonly index: LogIndex; readonly term: Term }
  | { readonly accepted: false; readonly reason: Refusal };

/** The read `ctx` is linearizable once everything up to `index` is applied here. */
export interface ReadResult {
  readonly ctx: number;
  readonly index: LogIndex;
}

/** Entries that are no longer in memory, to be read for a peer, or for this node's own state machine (`for` 0). */
export interface LogReadRequest {
  readonly for: NodeId;
  readonly lo: LogIndex;
  readonly hi: LogIndex;
}

/** What the node around the core should know; nothing of it has to be done for safety. */
export type CoreEvent =
  /** The configuration in force: at the start, when its entry is appended, and again when it is rolled back. */
  | { readonly type: 'confChanged'; readonly index: LogIndex; readonly conf: ConfState }
  /** The newest committed configuration is another one than before. */
  | { readonly type: 'confCommitted'; readonly index: LogIndex; readonly conf: ConfState }
  /** This node is no member any more: by its own log, or because a member said so. */
  | { readonly type: 'removedFromCluster'; readonly atIndex: LogIndex };

/** One batch of effects, handed over once. The driver carries them out in the order of the fields. */
export interface Ready {
  /** Increasing; `persisted(seq)` acknowledges this batch and all before it. */
  readonly seq: number;
  readonly events: readonly CoreEvent[];
  /** To be read from the log as it is now, before the writes of this batch; answered by `logRead`, each once. */
  readonly readLog: readonly LogReadRequest[];
  /** May be sent at once, beside the write. */
  readonly immediate: readonly Message[];
  /** Commit index, when newer than any handed over before: a hint for the next start, stored when it costs nothing. */
  readonly commitHint?: LogIndex;
  /** Present when term or vote changed: durable before the entries of this batch are. */
  readonly hardState?: HardState;
  /**
   * The received snapshot takes the place of log and state, after all earlier writes and before all later ones. The entries
   * of this batch, if any, follow it.
   */
  readonly snapshot?: SnapshotMeta;
  /** To be stored, contiguous; the first may lie at or below the last stored one and supersedes everything from there. */
  readonly entries: readonly Entry[];
  /** To be sent when this batch and all earlier ones are durable. */
  readonly afterPersist: readonly Message[];
  /** To be applied in order, bounded in bytes; stable on this node unless `applyAhead` allows otherwise. */
  readonly committed: readonly Entry[];
  /** A snapshot to be streamed from `from` into a new generation; answered by `snapshotReceived`. */
  readonly fetch?: { readonly from: NodeId; readonly meta: SnapshotMeta };
  readonly reads: readonly ReadResult[];
  /** Reads that can no longer be confirmed. */
  readonly droppedReads: readonly number[];
}

/** What a leader knows of a peer. */
export interface PeerStatus {
  readonly id: NodeId;
  readonly learner: boolean;
  readonly state: 'probe' | 'replicate' | 'snapshot';
  readonly match: LogIndex;
  readonly next: LogIndex;
  /** Heard of within an election timeout. */
  readonly active: boolean;
  /** How long ago it was heard of, or this leader's term began. */
  readonly silentMs: number;
  /** Said in its last heartbeat answer that it may lead. */
  readonly fit: boolean;
  /** The snapshot offered to it: the log from there on is kept for it. */
  readonly pendingSnapshot?: LogIndex;
}

export interface Status {
  readonly role: Role;
  readonly term: Term;
  readonly vote: NodeId;
  /** 0 while none is known. */
  readonly leader: NodeId;
  readonly baseIndex: LogIndex;
  readonly lastIndex: LogIndex;
  readonly stableIndex: LogIndex;
  readonly commitIndex: LogIndex;
  /** What `applied` reported: durable in the state machine. */
  readonly appliedIndex: LogIndex;
  /** The configuration in force and its entry. */
  readonly conf: ConfState;
  readonly confIndex: LogIndex;
  /** The newest configuration that is committed, the one in force or one before it, and its entry. */
  readonly committedConf: ConfState;
  readonly committedConfIndex: LogIndex;
  readonly removed: boolean;
  /** The no-op that opened this leader's term; absent in other roles. */
  readonly termStartIndex?: LogIndex;
  /** Term of the entry right before that no-op: no leader of a term in between has ever committed anything. Absent in other roles. */
  readonly termBefore?: Term;
  /** Present while this node leads: whether it was elected because the leader before it transferred the leadership. */
  readonly byTransfer?: boolean;
  /** A leader's target while it transfers. */
  readonly transferTo?: NodeId;
}

/**
 * The consensus of one node as a state machine: calls go in, `ready()` gives what is to be done about them. It does no I/O,
 * reads no clock and draws no randomness of its own, so equal calls give equal outputs, byte for byte.
 */
export interface RaftCore {
  /** Evaluates deadlines; `nowMs` is the node's monotonic clock, read after the input before it has arrived. */
  tick(nowMs: number): void;
  /** A message of a peer; `nowMs` as for `tick`, read after it arrived. */
  step(message: Message, nowMs: number): void;
  /** Keeps `data`, which must not change afterwards. */
  propose(data: Uint8Array): ProposeResult;
  /** Proposes another configuration; in force as soon as it is accepted. */
  proposeConf(change: ConfChange): ProposeResult<ConfRefusal>;
  /** Asks for a point in the log that a read may rely on; answered in `Ready.reads` or `Ready.droppedReads`, or refused. */
  readIndex(ctx: number): CoreRefusal | undefined;
  /**
   * The commit index, if this node holds a lease at `nowMs`: applied up to there, its state is linearizable. `nowMs` is read
   * after the request arrived.
   */
  leaseRead(nowMs: number): LogIndex | undefined;
  /** Hands leadership to that voter, or to the one that has most of the log. */
  transferLeadership(to: NodeId | undefined): CoreRefusal | 'noTarget' | undefined;

  hasReady(): boolean;
  ready(): Ready;

  /** Everything handed out to be written up to the batch `seq` is durable. */
  persisted(seq: number): void;
  /** The state machine holds everything up to `index` durably. */
  applied(index: LogIndex): void;
  /** Answers one `Ready.readLog`: entries from its `lo` on, at least one. */
  logRead(reader: NodeId, entries: readonly Entry[]): void;
  /** The log begins after `base` from now on; said before the disk forgets the entries, so that none of them is asked for. */
  compacted(base: SnapshotMeta): void;
  /** The connection to this peer broke. */
  unreachable(id: NodeId): void;
  /** Leader: the stream to this peer ended. Not needed for `ok`: the peer says so itself once it has installed. */
  snapshotResult(id: NodeId, ok: boolean): void;
  /**
   * Answers `Ready.fetch`: what arrived and is durable beside the generation in force, or undefined for a failure. True: a
   * coming `Ready.snapshot` puts it in force. False: it is not needed any more.
   */
  snapshotReceived(meta: SnapshotMeta | undefined): boolean;
  setFitness(fitness: Fitness): void;
  /** Whether the disk has room for more entries; it has unless said. Without it a leader takes no proposals and a follower no entries. */
  setRoom(hasRoom: boolean): void;
  /** Whether committed entries may be applied before they are stable on this node; not unless said. They are flushed only after that. */
  applyAhead(allowed: boolean): void;
  /**
   * For how long the oldest write has been under way, 0 without one. Longer than an election timeout, this node neither leads nor campaigns;
   * the sole member, whom nobody can replace, leads on for ten of them.
   */
  setStalled(forMs: number): void;
  /** A write or read failed. The role becomes `faulty` for good: nothing is accepted, handed out or acknowledged any more. */
  storageFailed(): void;

  /** What a snapshot of the state at `index` is described by. The log must still reach back to it. */
  snapshotMeta(index: LogIndex): SnapshotMeta;
  status(): Status;
  /** A leader's peers, ascending by id; none in other roles. */
  peers(): readonly PeerStatus[];
  /** Checks every rule that one node can check of itself; reads all entries in memory. @throws InvariantViolation */
  checkInvariants(): void;
}
