import type { Tracer } from './tracing.ts';

/** Operations on records, under the names that Vault's and OpenBao's dashboards use. */
export type BarrierOperation = 'get' | 'put' | 'list' | 'delete';

/** Receives events of a node for metrics and traces. Times are in milliseconds; `peer` is a node's name. */
export interface NodeObserver {
  /** A transaction that this node proposed was committed and applied. @param ms - since it was proposed */
  committed(ms: number): void;
  roleChanged(role: 'leader' | 'follower' | 'candidate'): void;
  /** This node is no longer the active node. @param ms - how long it was active */
  leadershipLost(ms: number): void;
  /** An operator made this node step down. @param ms - how long the leadership transfer took */
  steppedDown(ms: number): void;
  /** Called on the leader for each voter. @param ms - since the voter's last message */
  lastContact(ms: number): void;
  heartbeatAnswered(peer: string, ms: number): void;
  heartbeatFailed(peer: string): void;
  forwarded(ms: number): void;
  forwardFailed(): void;
  /** Records were read or written through the barrier. @param ms - how long that took */
  barrier(operation: BarrierOperation, ms: number): void;
  /** The provider of the seal was called, with or without success. */
  sealCalled(operation: 'encrypt' | 'decrypt' | 'random', ms: number): void;
  /** A call of the provider of the seal failed. @param failure - the kind of failure, such as `throttled` */
  sealFailed(failure: string): void;
  /** This node refused a signed membership list that contradicts its own. */
  membershipConflict(): void;
  /** Absent if requests are not traced. */
  readonly tracer?: Tracer;
}

const ignore = (): void => undefined;

/** Ignores every event. */
export const noObserver: NodeObserver = {
  committed: ignore,
  roleChanged: ignore,
  leadershipLost: ignore,
  steppedDown: ignore,
  lastContact: ignore,
  heartbeatAnswered: ignore,
  heartbeatFailed: ignore,
  forwarded: ignore,
  forwardFailed: ignore,
  barrier: ignore,
  sealCalled: ignore,
  sealFailed: ignore,
  membershipConflict: ignore,
};
