import type { NodeId } from '@transitd/raft-core';
import type { NodeIdentity } from './membership/identity.ts';
import type { Member } from './membership/membership.ts';
import type { PeerCalls } from './node-calls.ts';
import type { Heartbeats } from './standbys/heartbeats.ts';
import type { StandbyReport, Standbys } from './standbys/standbys.ts';
import type { Forwarder } from './transport/forwarder.ts';

/** The other nodes of a cluster as one node sees them, whatever engine keeps the records. */
export interface Peers {
  readonly membershipList: {
    readonly members: readonly Member[];
    member(id: NodeId): Member | undefined;
  };
  /** The certificate of the cluster port, and that of the authority that signed it; undefined while this node has none. */
  readonly identity: Pick<NodeIdentity, 'certificate' | 'authority'> | undefined;
  /** Returns the other node that this node believes to be active; undefined if none is known or this node itself is active. */
  readonly activeMember: Member | undefined;
  readonly heartbeats: Pick<Heartbeats, 'appliedSentMs' | 'times'>;
  /**
   * Until when the active node waits for this node before it answers a revocation, by the monotonic clock. Later this node serves nothing
   * as a standby.
   */
  readonly awaitedUntilMs: number;
  readonly standbys: Pick<Standbys, 'confirmed'> & {
    report(id: NodeId): (StandbyReport & { readonly agoMs: number }) | undefined;
  };
  /** Whether this node can forward requests to other nodes. */
  readonly canForward: boolean;
  readonly forwarder: Pick<Forwarder, 'forward'>;
  /** The time in the newest canary that this node has read. */
  readonly canaryUtcMs: number | undefined;
  /** Asks other nodes for what they know of themselves. */
  readonly calls: Pick<PeerCalls, 'report' | 'usage' | 'recordUsage'>;
}
