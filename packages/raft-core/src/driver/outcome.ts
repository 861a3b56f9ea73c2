import type { ConfRefusal, CoreRefusal } from '../core/contract/raft-core.ts';
import type { LogIndex, NodeId, Role, Term } from '../types.ts';

/**
 * Why a request certainly had no effect. `lostLeadership`: another leader's entry was committed in its place, or the leader that a read
 * waited for is gone. `stalled`: the state store does not finish its writes. `faulty`: the node met an error and has stopped permanently.
 */
export type RefusalReason = CoreRefusal | 'lostLeadership' | 'stalled' | 'stopped';

/** `noPeers`: a driver without a transport runs a cluster of one. */
export type ConfRefusalReason = RefusalReason | ConfRefusal | 'noPeers';

export type TransferRefusalReason = RefusalReason | 'noTarget';

interface Refused<Reason> {
  readonly kind: 'refused';
  readonly reason: Reason;
}

/**
 * The outcome of a proposal. `applied`: committed, and visible on this node. `refused`: it certainly never happens. `unknown`: it was
 * written to the log and this node cannot learn its outcome. It may still take effect, so it must never be proposed again.
 */
export type ProposalOutcome<Result, Reason = RefusalReason> =
  | { readonly kind: 'applied'; readonly index: LogIndex; readonly result: Result }
  | Refused<Reason>
  | { readonly kind: 'unknown'; readonly index: LogIndex };

/** `readable`: this node's state now includes everything acknowledged anywhere before the request, up to `index` at least. */
export type ReadOutcome = { readonly kind: 'readable'; readonly index: LogIndex } | Refused<RefusalReason>;

/**
 * `resigned`: this node no longer leads, and the target was told to campaign. `aborted`: it still leads, or lost leadership for another
 * reason.
 */
export type TransferOutcome = { readonly kind: 'resigned' | 'aborted' } | Refused<TransferRefusalReason>;

/** `unanswered`: the peer cannot be reached, or has not answered within an election timeout. */
export type UnconfirmedReason = RefusalReason | 'unanswered';

/** `applied`: the peer has applied and published the entry that was asked for, and all others up to `index`. */
export type ConfirmOutcome = { readonly kind: 'applied'; readonly index: LogIndex } | Refused<UnconfirmedReason>;

export interface DriverStatus {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  readonly role: Role;
  /** This node leads, has applied an entry of its own term and takes requests. */
  readonly ready: boolean;
  readonly term: Term;
  /** Id of the leader; 0 if none is known. */
  readonly leader: NodeId;
  /** Whether this term began by a transfer of leadership, as far as this node knows. */
  readonly byTransfer?: boolean;
  /** The target of this leader's transfer, while one is under way. */
  readonly transferTo?: NodeId;
  readonly lastIndex: LogIndex;
  readonly commitIndex: LogIndex;
  /** Index applied in memory, which reads see. */
  readonly appliedIndex: LogIndex;
  /** Index of the last entry flushed to disk. A restart applies the entries after it. */
  readonly flushedIndex: LogIndex;
}
