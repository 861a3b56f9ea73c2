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
} from '../../types.ts';

/** Why the core refuses a request; it certainly had no effect. */
export type CoreRefusal = 'notLeader' | 'busy' | 'tooLarge' | 'transferring' | 'sealed' | 'removed' | 'faulty';

/**
 * `confPending`: an earlier change, or the first entry of this leader's term, is not committed yet. `confInvalid`: the configuration in
 * force does not permit the change.
 */
export type ConfRefusal = CoreRefusal | 'confPending' | 'confInvalid';

export type ProposeResult<Refusal = CoreRefusal> =
  | { readonly accepted: true; readonly index: LogIndex; readonly term: Term }
  | { readonly accepted: false; readonly reason: Refusal };

/** The read `ctx` is linearizable once everything up to `index` is applied on this node. */
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

/** Notifications for the code around the core; safety does not depend on any reaction to them. */
export type CoreEvent =
  /** The configuration in force: at the start, when its entry is appended, and again when it is rolled back. */
  | { readonly type: 'confChanged'; readonly index: LogIndex; readonly conf: ConfState }
  /** A newer configuration was committed. */
  | { readonly type: 'confCommitted'; readonly index: LogIndex; readonly conf: ConfState }
  /** This node is no longer a member, according to its own log or another member. */
  | { readonly type: 'removedFromCluster'; readonly atIndex: LogIndex };

/** One batch of effects, handed out once. The driver carries them out in the order of the fields. */
export interface Ready {
  /** Increasing; `persisted(seq)` acknowledges this batch and all earlier ones. */
  readonly seq: number;
  readonly events: readonly CoreEvent[];
  /** Read these entries from the log before the writes of this batch change it, and answer each request by one call of `logRead`. */
  readonly readLog: readonly LogReadRequest[];
  /** Send these messages at once, in parallel with the write. */
  readonly immediate: readonly Message[];
  /**
   * The commit index, if it has risen since it was last handed out. It is a hint for the next start, stored with another write at no extra
   * cost.
   */
  readonly commitHint?: LogIndex;
  /** Present when the term or vote changed; must be durable before the entries of this batch. */
  readonly hardState?: HardState;
  /**
   * The received snapshot replaces log and state, after all earlier writes and before all later ones. The entries of this batch, if any,
   * follow it.
   */
  readonly snapshot?: SnapshotMeta;
  /** Store these contiguous entries. The first may be at or below the last stored entry, and replaces everything from there on. */
  readonly entries: readonly Entry[];
  /** Send these messages when this batch and all earlier batches are durable. */
  readonly afterPersist: readonly Message[];
  /** Apply these entries in order. Their bytes are limited. They are stable on this node unless `applyAhead` allows otherwise. */
  readonly committed: readonly Entry[];
  /** A snapshot to be streamed from `from` into a new generation; answered by `snapshotReceived`. */
  readonly fetch?: { readonly from: NodeId; readonly meta: SnapshotMeta };
  readonly reads: readonly ReadResult[];
  /** Reads that can no longer be confirmed. */
  readonly droppedReads: readonly number[];
}

/** A leader's view of a peer. */
export interface PeerStatus {
  readonly id: NodeId;
  readonly learner: boolean;
  readonly state: 'probe' | 'replicate' | 'snapshot';
  readonly match: LogIndex;
  readonly next: LogIndex;
  /** The peer was heard within the last election timeout. */
  readonly active: boolean;
  /** Time since the peer was last heard, or since this leader's term began. */
  readonly silentMs: number;
  /** Whether the peer may lead, according to its last heartbeat answer. */
  readonly fit: boolean;
  /** Index of the snapshot offered to the peer: the log from there on is kept for the peer. */
  readonly pendingSnapshot?: LogIndex;
}

export interface Status {
  readonly role: Role;
  readonly term: Term;
  readonly vote: NodeId;
  /** Id of the leader; 0 if none is known. */
  readonly leader: NodeId;
  /** Whether this term began by a transfer of leadership, as far as this node knows. */
  readonly byTransfer: boolean;
  readonly baseIndex: LogIndex;
  readonly lastIndex: LogIndex;
  readonly stableIndex: LogIndex;
  readonly commitIndex: LogIndex;
  /** As reported by `applied`: durable in the state machine. */
  readonly appliedIndex: LogIndex;
  /** The configuration in force and the index of its entry. */
  readonly conf: ConfState;
  readonly confIndex: LogIndex;
  /** The newest committed configuration with the index of its entry. It is the configuration in force or the previous one. */
  readonly committedConf: ConfState;
  readonly committedConfIndex: LogIndex;
  readonly removed: boolean;
  /** The no-op that opened this leader's term; absent in other roles. */
  readonly termStartIndex?: LogIndex;
  /** Term of the entry right before that no-op. No leader of a term between the two ever committed an entry. Absent in other roles. */
  readonly termBefore?: Term;
  /** The target of a leader's transfer, while one is under way. */
  readonly transferTo?: NodeId;
}

/** The part of the status that is available without a lookup of configurations. */
export type Position = Pick<Status, 'role' | 'term' | 'leader' | 'byTransfer' | 'lastIndex' | 'commitIndex' | 'transferTo'>;

/** A lease of this node as leader. */
export interface Lease {
  /** The commit index: reads are linearizable once the state is applied up to this index. */
  readonly index: LogIndex;
  /** When the lease ends if no further round is answered, on the clock of `nowMs`. */
  readonly endMs: number;
}

/**
 * The consensus of one node as a state machine: calls go in, `ready()` returns the effects to carry out. It does no I/O, reads no clock and
 * draws no randomness of its own, so equal calls give equal outputs, byte for byte.
 */
export interface RaftCore {
  /** Checks deadlines. `nowMs` is the node's monotonic clock, read after the preceding input arrived. */
  tick(nowMs: number): void;
  /** Takes a peer's message; `nowMs` as for `tick`, read after the message arrived. */
  step(message: Message, nowMs: number): void;
  /** Proposes an entry. Keeps `data`, which must not change afterwards. */
  propose(data: Uint8Array): ProposeResult;
  /** Proposes another configuration, which is in force as soon as it is accepted. */
  proposeConf(change: ConfChange): ProposeResult<ConfRefusal>;
  /** Requests a read index for a read; answered in `Ready.reads` or `Ready.droppedReads`, or refused. */
  readIndex(ctx: number): CoreRefusal | undefined;
  /**
   * Returns the commit index if this node holds a lease at `nowMs`, otherwise undefined. Once the state is applied up to this index, a read
   * of it is linearizable. `nowMs` is read after the request arrived.
   */
  leaseRead(nowMs: number): LogIndex | undefined;
  /** Returns the lease of this node at `nowMs`; undefined if it holds none. */
  lease(nowMs: number): Lease | undefined;
  /** Transfers leadership to the given voter, or to the voter with the longest log. */
  transferLeadership(to: NodeId | undefined): CoreRefusal | 'noTarget' | undefined;

  hasReady(): boolean;
  ready(): Ready;

  /** Notes that everything handed out up to the batch `seq` is durable. */
  persisted(seq: number): void;
  /** Notes that the state machine holds everything up to `index` durably. */
  applied(index: LogIndex): void;
  /** Answers one request of `Ready.readLog` with at least one entry, from the requested `lo` on. A snapshot may cancel a request. */
  logRead(request: LogReadRequest, entries: readonly Entry[]): void;
  /** Lets the log begin after `base`. Called before the disk deletes the entries, so that none of them is requested afterwards. */
  compacted(base: SnapshotMeta): void;
  /** Notes that the connection to this peer broke. */
  unreachable(id: NodeId): void;
  /** Notes that this peer itself closed its connections and refuses new ones. */
  refused(id: NodeId): void;
  /** When this node campaigns next, on its clock, if it suspects that its leader has ended; undefined if it does not suspect that. */
  readonly earlyCampaignMs: number | undefined;
  /**
   * On a leader: notes that the snapshot stream to this peer ended. `ok` changes nothing, because the peer itself reports once it has
   * installed the snapshot.
   */
  snapshotResult(id: NodeId, ok: boolean): void;
  /**
   * Answers `Ready.fetch` with the snapshot that arrived and is durable next to the current generation, or with undefined for a failure.
   * Returns true if a following `Ready.snapshot` installs it, false if it is no longer needed.
   */
  snapshotReceived(meta: SnapshotMeta | undefined): boolean;
  setFitness(fitness: Fitness): void;
  /**
   * Reports whether the disk has room for more entries; true by default. Without room a leader takes no proposals and a follower no
   * entries.
   */
  setRoom(hasRoom: boolean): void;
  /**
   * Reports whether committed entries may be applied before they are stable on this node; false by default. They are flushed only once they
   * are stable.
   */
  applyAhead(allowed: boolean): void;
  /**
   * Reports for how long the oldest write has been under way; 0 without one. Above an election timeout this node neither leads nor
   * campaigns; the sole member, which nobody can replace, keeps leading for ten election timeouts.
   */
  setStalled(forMs: number): void;
  /**
   * Reports that a write or read failed. The role becomes `faulty` permanently: nothing is accepted, handed out or acknowledged any longer.
   */
  storageFailed(): void;

  /** Returns the description of a snapshot of the state at `index`. The log must still reach back to it. */
  snapshotMeta(index: LogIndex): SnapshotMeta;
  status(): Status;
  /** Index of the no-op that opened this leader's term; undefined in other roles. */
  readonly termStartIndex: LogIndex | undefined;
  /** Returns the part of the status that is read for every request. */
  position(): Position;
  /** Returns a leader's peers, ascending by id; none in other roles. */
  peers(): readonly PeerStatus[];
  /** Checks every rule that one node can check on its own; reads all entries in memory. @throws InvariantViolation */
  checkInvariants(): void;
}
