import type { Barrier } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import type { Logger, NodeObserver } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import type { Storage } from './storage-port.ts';

/** What the node around its part in the cluster is and does. */
export interface ClusterHost {
  readonly config: Config;
  readonly log: Logger;
  /** The data directory. */
  readonly directory: string;
  /** URL of this node's API. */
  readonly apiAddress: () => string;
  /** It leads, and serves. */
  readonly isActive: () => boolean;
  /** It has its keys, and what serves is loaded. */
  readonly isUnsealed: () => boolean;
  /** Its records are others than those of the active node. */
  readonly onDifference: () => void;
  /** What is on its disk is not what this node told the others: the process must end. */
  readonly onFatal: (error: Error) => void;
  /** This node is no member any more. */
  readonly onRemoved: () => void;
  readonly observer: NodeObserver;
}

/** The node's own parts, once they are open. */
export interface LocalNode {
  readonly storage: Storage;
  readonly barrier: Barrier;
  readonly nodeId: NodeId;
  readonly clusterId: string;
}
