import type { CoreRefusal } from '../core/raft-core.ts';
import type { LogIndex, NodeId, Role, Term } from '../types.ts';

/** Why a request had no effect, for certain. `faulty`: the node met an error and has stopped for good. */
export type RefusalReason = CoreRefusal | 'stopped';

interface Refused {
  readonly kind: 'refused';
  readonly reason: RefusalReason;
}

/**
 * What became of a proposal. `applied`: committed, and visible on this node. `refused`: certainly never happens. `unknown`: it
 * was handed to the log and the node failed before it learned more, so it may still happen and is never proposed again.
 */
export type ProposalOutcome<Result> =
  | { readonly kind: 'applied'; readonly index: LogIndex; readonly result: Result }
  | Refused
  | { readonly kind: 'unknown'; readonly index: LogIndex };

/** `readable`: this node's state now includes everything acknowledged anywhere before the request, up to `index` at least. */
export type ReadOutcome = { readonly kind: 'readable'; readonly index: LogIndex } | Refused;

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
