import type { DriverLimits, DriverStatus, LogIndex, NodeId, PeerStatus, Term, TransferOutcome } from '@transitd/raft-core';

/** Ports on which a member listens, on the loopback interface. */
export interface Address {
  readonly id: NodeId;
  readonly port: number;
  /** The port for requests for a snapshot. */
  readonly snapshotPort: number;
}

/** Closed-loop clients: each sends its next request when the last one is answered, until the time or the number of requests is reached. */
export interface Load {
  readonly clients: number;
  readonly ms: number;
  readonly requests: number;
}

export interface LoadRun {
  readonly done: number;
  /** Number of requests with any other answer; such an answer ends its client. */
  readonly failed: number;
  readonly ms: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The orders of the bench to a member, and the member's answers. */
export interface Orders {
  start: { ask: { readonly peers: readonly Address[]; readonly limits: Partial<DriverLimits> }; answer: null };
  peer: { ask: Address; answer: null };
  write: { ask: Load & { readonly entryBytes: number }; answer: LoadRun };
  leaseRead: { ask: Load; answer: LoadRun };
  readIndex: { ask: Load; answer: LoadRun };
  transfer: { ask: null; answer: TransferOutcome };
  status: { ask: null; answer: MemberStatus };
  /** Answered when the member has the log up to `target` on its disk. */
  catchUp: { ask: { readonly target: LogIndex }; answer: { readonly entries: number; readonly ms: number } };
  /** Writes so many records of so many bytes each. */
  fill: { ask: { readonly count: number; readonly bytes: number }; answer: null };
  /** Answered when a fetched snapshot is installed, with the time since it was requested and the number of bytes. */
  installed: { ask: null; answer: { readonly index: LogIndex; readonly ms: number; readonly bytes: number } };
  stop: { ask: null; answer: null };
}

export interface MemberStatus extends DriverStatus {
  readonly baseIndex: LogIndex;
  readonly peers: readonly PeerStatus[];
}

export type OrderKind = keyof Orders;

/** One order that was sent. */
export type Order<K extends OrderKind = OrderKind> = {
  [Kind in K]: { readonly kind: Kind; readonly number: number; readonly ask: Orders[Kind]['ask'] };
}[K];

/** A message of a member: the answer to an order, or an event. */
export type Report =
  | { readonly kind: 'answer'; readonly number: number; readonly answer: unknown }
  | { readonly kind: 'listening'; readonly port: number; readonly snapshotPort: number }
  /** The member leads, and its first write of this term is committed. */
  | { readonly kind: 'leads'; readonly term: Term }
  | { readonly kind: 'failed'; readonly reason: string };
