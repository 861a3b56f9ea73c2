import type { ConfRefusal, CoreRefusal } from '../core/raft-core.ts';
import type { LogIndex, NodeId, Role, Term } from '../types.ts';

/**
 * Why a request had no effect, for certain. `lostLeadership`: another leader's entry was committed in its place, or a read
 * lost whom it waited for. `stalled`: the state store does not finish its writes. `faulty`: the node met an error and has stopped for good.
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
 * What became of a proposal. `applied`: committed, and visible on this node. `refused`: certainly never happens. `unknown`: it
 * was handed to the log and this node lost sight of it, so it may still happen and is never proposed again.
 */
export type ProposalOutcome<Result, Reason = RefusalReason> =
  | { readonly kind: 'applied'; readonly index: LogIndex; readonly result: Result }
  | Refused<Reason>
  | { readonly kind: 'unknown'; readonly index: LogIndex };

/** `readable`: this node's state now includes everything acknowledged anywhere before the request, up to `index` at least. */
export type ReadOutcome = { readonly kind: 'readable'; readonly index: LogIndex } | Refused<RefusalReason>;

/** `resigned`: this node leads no more, and the target was asked to. `aborted`: it still leads, or lost the lead otherwise. */
export type TransferOutcome = { readonly kind: 'resigned' | 'aborted' } | Refused<TransferRefusalReason>;

export interface DriverStatus {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  readonly role: Role;
  /** This node leads, has applied an entry of its own term and takes requests. */
  readonly ready: boolean;
  readonly term: Term;
  /** 0 while none is known. */
  readonly leader: NodeId;
  readonly lastIndex: LogIndex;
  readonly commitIndex: LogIndex;
  /** In memory: what reads see. */
  readonly appliedIndex: LogIndex;
  /** On disk: where a restart begins to apply. */
  readonly flushedIndex: LogIndex;
}
