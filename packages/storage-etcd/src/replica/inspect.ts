import type { Copy } from '../copy/copy.ts';
import { keysBelow } from '../copy/keys.ts';
import type { Etcd } from '../etcd.ts';
import { type ReplicaState, stateOf } from './replica-state.ts';
import { readState } from './state-feed.ts';

/** A cluster as it is in etcd. */
export interface InspectedCluster extends ReplicaState {
  /** Number of nodes that are known, or hold the active role. A node that died counts until its lease ends. */
  readonly runningNodes: number;
}

/** Reads the cluster below a prefix as of one revision, and writes nothing. @throws EtcdError, CopyFault, TypeError */
export async function inspectCluster({
  etcd,
  prefix,
}: {
  readonly etcd: Etcd;
  readonly prefix: string;
}): Promise<InspectedCluster> {
  const copy = await readState({ etcd, keys: keysBelow(prefix) });
  return { ...stateOf(copy), runningNodes: runningNodes(copy) };
}

const runningNodes = ({ nodes, active }: Copy): number => Math.max(nodes.size, active === undefined ? 0 : 1);
