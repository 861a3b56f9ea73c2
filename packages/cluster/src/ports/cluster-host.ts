import type { Barrier } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import type { Logger, NodeObserver } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import type { Storage } from './storage-port.ts';

/** The node that runs the cluster code: its configuration, state and callbacks. */
export interface ClusterHost {
  readonly config: Config;
  readonly log: Logger;
  /** The data directory. */
  readonly directory: string;
  /** URL of this node's API. */
  readonly apiAddress: () => string;
  /** Whether this node leads and serves. */
  readonly isActive: () => boolean;
  /** Whether this node has its keys and its services are loaded. */
  readonly isUnsealed: () => boolean;
  /** State digest mismatch: this node's records differ from the active node's. */
  readonly onDigestMismatch: () => void;
  /** The earlier heartbeats no longer let this node serve as a performance standby. */
  readonly onHeartbeatsForgotten: () => void;
  /** The disk lacks entries that this node acknowledged: the process must end. */
  readonly onFatal: (error: Error) => void;
  /** This node was removed from the cluster. */
  readonly onRemoved: () => void;
  readonly observer: NodeObserver;
  /** Returns this node's report on itself, as JSON; other members ask for it. */
  readonly report: () => Promise<object>;
}

/** The opened storage and barrier of this node, and its ids. */
export interface LocalNode {
  readonly storage: Storage;
  readonly barrier: Barrier;
  readonly nodeId: NodeId;
  readonly clusterId: string;
}
