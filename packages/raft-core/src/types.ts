/** Position in the log; 0 is before the first entry. Always a safe integer. */
export type LogIndex = number;
/** Election epoch (Raft §5.1); 0 before the first election. Always a safe integer. */
export type Term = number;
/** 48-bit number drawn when a node is created, never reused by another node; 0 means "none". */
export type NodeId = number;

/** `noop` opens a leader's term (Raft §5.4.2), `conf` carries a whole `ConfState`, `normal` belongs to the state machine. */
export type EntryType = 'normal' | 'noop' | 'conf';

export interface Entry {
  readonly term: Term;
  readonly index: LogIndex;
  readonly type: EntryType;
  readonly data: Uint8Array;
}

/** The state that must survive a restart besides the log (Raft figure 2). `commit` is a hint, stored lazily: no rule relies on it. */
export interface HardState {
  readonly term: Term;
  readonly vote: NodeId;
  readonly commit: LogIndex;
}

/** Membership (thesis §4): joint while `votersOutgoing` is not empty. `context` is opaque to the core (names, addresses). */
export interface ConfState {
  readonly voters: readonly NodeId[];
  readonly votersOutgoing: readonly NodeId[];
  readonly learners: readonly NodeId[];
  readonly learnersNext: readonly NodeId[];
  readonly autoLeave: boolean;
  readonly context: Uint8Array;
}

/** The beginning of the log: everything up to `index` is in the state machine. `conf` is the membership as of `index`. */
export interface SnapshotMeta {
  readonly index: LogIndex;
  readonly term: Term;
  readonly conf: ConfState;
  readonly confIndex: LogIndex;
}

/** The new role of one member; a node that is neither voter nor learner is not a member. */
export interface MemberChange {
  readonly id: NodeId;
  readonly to: 'voter' | 'learner' | 'none';
}

/**
 * A change of the configuration in force. With more than one voter added or removed it becomes joint, and then `leave` is the only possible
 * change until both halves have agreed; it follows automatically unless `autoLeave` is false.
 */
export type ConfChange =
  | {
      readonly kind: 'change';
      readonly members: readonly MemberChange[];
      /** The whole new context; absent: the old one stays. */
      readonly context?: Uint8Array;
      readonly autoLeave?: boolean;
    }
  | { readonly kind: 'leave' };

/** Whether a node may lead: a `low` one (little disk) prefers not to, a `sealed` one leads only to transfer leadership. */
export type Fitness = 'fit' | 'low' | 'sealed';

export type Role = 'follower' | 'precandidate' | 'candidate' | 'leader' | 'faulty';

/** One waiting read or question. `id` is unique within `incarnation`, the asking node's incarnation. */
export interface ReadRequest {
  readonly id: number;
  readonly incarnation: number;
}

interface Envelope {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly term: Term;
  readonly clusterId: string;
  /** The leader's counter for this peer, from 1 on, echoed by answers in the same term; 0 in votes and in answers to earlier terms. */
  readonly session: number;
}

/** Every message between two cores. */
export type Message = Envelope &
  (
    | { readonly type: 'PreVote' | 'Vote'; readonly lastIndex: LogIndex; readonly lastTerm: Term; readonly transfer: boolean }
    | {
        readonly type: 'PreVoteResp' | 'VoteResp';
        readonly reject: boolean;
        readonly forTerm: Term;
        /** Refused: the voter's log has entries that the candidate's lacks. */
        readonly longerLog: boolean;
        /** Refused only because the voter has given its vote of this term to another candidate, perhaps itself. */
        readonly votedElsewhere: boolean;
      }
    | {
        readonly type: 'Append';
        readonly prevIndex: LogIndex;
        readonly prevTerm: Term;
        readonly commit: LogIndex;
        readonly entries: readonly Entry[];
        readonly round: number;
      }
    /** Tells the commit index to a peer that was sent all entries. Not answered: heartbeats repeat it up to the peer's known match. */
    | { readonly type: 'Commit'; readonly prevIndex: LogIndex; readonly prevTerm: Term; readonly commit: LogIndex }
    | { readonly type: 'AppendResp'; readonly ok: true; readonly match: LogIndex; readonly round: number }
    | {
        readonly type: 'AppendResp';
        readonly ok: false;
        readonly prevIndex: LogIndex;
        readonly hintIndex: LogIndex;
        readonly hintTerm: Term;
        readonly round: number;
      }
    | {
        readonly type: 'Heartbeat';
        readonly commit: LogIndex;
        readonly round: number;
        /** Length of the leader's lease, the same in its whole term. */
        readonly leaseMs: number;
      }
    /** `round` 0: answers no heartbeat, but a TimeoutNow that an unfit node refuses. */
    | { readonly type: 'HeartbeatResp'; readonly round: number; readonly fit: boolean }
    | { readonly type: 'SnapOffer'; readonly meta: SnapshotMeta }
    | { readonly type: 'SnapResult'; readonly index: LogIndex; readonly ok: boolean; readonly lastIndex: LogIndex }
    | { readonly type: 'TimeoutNow'; readonly lastIndex: LogIndex; readonly lastTerm: Term }
    | { readonly type: 'Removed'; readonly atIndex: LogIndex }
    | { readonly type: 'ReadIndex'; readonly requests: readonly ReadRequest[] }
    | {
        readonly type: 'ReadIndexResp';
        readonly requests: readonly ReadRequest[];
        readonly index: LogIndex;
        readonly ok: boolean;
      }
    /** Asks, between drivers, whether the entry is applied. Answered once it is. */
    | { readonly type: 'Confirm'; readonly request: ReadRequest; readonly index: LogIndex }
    /** `index`: the newest entry that the sender has applied and published; at or above the one that was asked for. */
    | { readonly type: 'ConfirmResp'; readonly request: ReadRequest; readonly index: LogIndex }
  );

type WithoutEnvelope<M> = M extends unknown ? Omit<M, keyof Envelope> : never;

/** A message's content, without sender and receiver. */
export type MessageBody = WithoutEnvelope<Message>;
