import { keysBelow } from '../copy/keys.ts';
import type { Etcd } from '../etcd.ts';
import { pagesOf } from './pages.ts';
import { type ReplicaState, stateOf } from './replica-state.ts';
import { readState } from './state-feed.ts';

const nodesOfPage = 100;

/** The place of a cluster in its history. */
export interface ClusterPosition {
  /** Revision of the newest commit; 0 before the first one. */
  readonly index: number;
  /** Number of nodes that are known, or hold the active role. A node that died counts until its lease ends. */
  readonly runningNodes: number;
}

/** A cluster as it is in etcd. */
export interface InspectedCluster extends ReplicaState, ClusterPosition {}

interface Place {
  readonly etcd: Etcd;
  readonly prefix: string;
}

/** Reads the cluster below a prefix as of one revision, and writes nothing. @throws EtcdError, CopyFault, TypeError */
export async function inspectCluster({ etcd, prefix }: Place): Promise<InspectedCluster> {
  const copy = await readState({ etcd, keys: keysBelow(prefix) });
  return { ...stateOf(copy), runningNodes: runningNodes(copy.nodes.size, copy.active !== undefined) };
}

/** Reads how far the cluster below a prefix is, without its records. @throws EtcdError, TypeError */
export async function positionOfCluster({ etcd, prefix }: Place): Promise<ClusterPosition> {
  const { active, marker, nodes, nodesEnd } = keysBelow(prefix);
  let known = 0;
  for await (const page of pagesOf(etcd, { key: nodes, end: nodesEnd, limit: nodesOfPage, isPinned: true }))
    known += page.rows.length;
  const { rows } = await etcd.range({ key: active, end: `${marker}\0` });
  const hasActive = rows.some(({ key }) => key === active);
  const index = rows.find(({ key }) => key === marker)?.modRevision ?? 0;
  return { index, runningNodes: runningNodes(known, hasActive) };
}

const runningNodes = (known: number, hasActive: boolean): number => Math.max(known, hasActive ? 1 : 0);
