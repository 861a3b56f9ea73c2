/** Operations on records, by the names that dashboards of the peers have. */
export type BarrierOperation = 'get' | 'put' | 'list' | 'delete';

/** Hears what happens on a node, so that figures can be made of it. Times in milliseconds; `peer` is a node's name. */
export interface NodeObserver {
  /** A transaction of this node was committed and applied, so long after it was proposed. */
  committed(ms: number): void;
  roleChanged(role: 'leader' | 'follower' | 'candidate'): void;
  /** It was the active node for so long. */
  leadershipLost(ms: number): void;
  /** An operator asked for it; it took so long. */
  steppedDown(ms: number): void;
  /** It leads, and a voter was heard of so long ago. */
  lastContact(ms: number): void;
  echoed(peer: string, ms: number): void;
  echoFailed(peer: string): void;
  forwarded(ms: number): void;
  forwardFailed(): void;
  /** Records were read or written through the barrier. */
  barrier(operation: BarrierOperation, ms: number): void;
  /** A signed membership list was refused that contradicts this node's. */
  membershipConflict(): void;
}

const ignore = (): void => undefined;
export const nobody: NodeObserver = {
  committed: ignore,
  roleChanged: ignore,
  leadershipLost: ignore,
  steppedDown: ignore,
  lastContact: ignore,
  echoed: ignore,
  echoFailed: ignore,
  forwarded: ignore,
  forwardFailed: ignore,
  barrier: ignore,
  membershipConflict: ignore,
};
