import type { DriverStatus, LogIndex } from '@transitd/raft-core';

/** The events in the life of a node as a member of a cluster. */
interface MemberEventKinds {
  /** The services were loaded, loaded again from a restored state, or closed. */
  readonly services: { readonly isLoaded: boolean };
  /** The role, term, leader or readiness of this node has changed. */
  readonly status: DriverStatus;
  /** The configuration in force, or the newest committed one, has changed. On etcd: the registered nodes. */
  readonly configuration: undefined;
  /** The members that this node calls and admits may have changed, by its log or by a list of another member. */
  readonly members: undefined;
  /** Another member says that this node was removed. */
  readonly removalNotice: undefined;
  /** This node was removed from its cluster. */
  readonly removed: undefined;
  /** State digest mismatch: this node's records differ from the active node's at this index. */
  readonly digestDiffers: { readonly index: LogIndex };
  /** The earlier heartbeats no longer let this node serve as a performance standby. */
  readonly heartbeatsForgotten: undefined;
  /** This node no longer opens by itself a state that replaced its own: that has ended, or an operator has sealed the node. */
  readonly reopeningEnded: undefined;
  /** A clock of the machine jumped by this many milliseconds against the monotonic clock: no earlier lease or heartbeat counts. */
  readonly clockJump: { readonly ms: number };
}

type Listener<Kind extends keyof MemberEventKinds> = (event: MemberEventKinds[Kind]) => void;

/**
 * Reports what happens to this node, upwards from consensus and the seal. Listeners run at once, in the order in which they were added,
 * which is the order in which their objects were built: from the bottom up.
 */
export class MemberEvents {
  readonly #listeners: { [Kind in keyof MemberEventKinds]?: Listener<Kind>[] } = {};

  on<Kind extends keyof MemberEventKinds>(kind: Kind, listener: Listener<Kind>): void {
    const listeners: Listener<Kind>[] = this.#listeners[kind] ?? [];
    listeners.push(listener);
    (this.#listeners as Record<Kind, Listener<Kind>[]>)[kind] = listeners;
  }

  emit<Kind extends keyof MemberEventKinds>(
    ...[kind, event]: MemberEventKinds[Kind] extends undefined ? [Kind] : [Kind, MemberEventKinds[Kind]]
  ): void {
    for (const listener of this.#listeners[kind] ?? []) listener(event as MemberEventKinds[Kind]);
  }
}
