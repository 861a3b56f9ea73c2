import { join, resolve } from 'node:path';
import type { NodeId, SnapshotMeta } from '@transitd/raft-core';
import { damaged } from '../errors.ts';
import { type Disk, localDisk } from './disk.ts';
import { NodeStateFile } from './node-state.ts';

/** Returns the paths inside a data directory. A generation is one complete copy of log and state; `node.state` names the current one. */
export function nodePaths(directory: string) {
  const path = resolve(directory);
  const inGeneration = (name: string) => (generation: number) => join(path, `${generationPrefix}${generation}`, name);
  return {
    path,
    nodeState: join(path, 'node.state'),
    generation: inGeneration(''),
    log: inGeneration('log'),
    state: inGeneration('state'),
  };
}

const generationPrefix = 'generation-';

/** Deletes every generation except the current one: generations that a snapshot has replaced, and incomplete ones. */
export async function removeOtherGenerations(disk: Disk, directory: string, current: number): Promise<void> {
  const { path } = nodePaths(directory);
  const names = (await disk.list(path)) ?? [];
  const others = names.filter((name) => name.startsWith(generationPrefix) && name !== `${generationPrefix}${current}`);
  if (others.length === 0) return;
  for (const name of others) await disk.removeDirectory(join(path, name));
  await disk.syncDirectory(path);
}

/**
 * Returns whether the directory holds a node.
 * @throws StorageDamaged if there is a generation but no `node.state`
 */
export async function hasNode(directory: string, disk: Disk = localDisk): Promise<boolean> {
  const { path, nodeState } = nodePaths(directory);
  const names = (await disk.list(path)) ?? [];
  if (names.includes('node.state')) return true;
  if (names.some((name) => name.startsWith(generationPrefix)))
    throw damaged(nodeState, 'is missing although the directory holds the data of a node');
  return false;
}

/** A data directory that this process has locked until it calls `unlock`. */
export interface LockedDirectory {
  /** For `createNode` and `SegmentLog.open` while the lock is held: its `lock` does nothing. */
  readonly disk: Disk;
  readonly unlock: () => Promise<void>;
}

/** Creates the directory if it is missing and locks it, whether or not it holds a node. @throws StorageInUse */
export async function lockNodeDirectory(directory: string): Promise<LockedDirectory> {
  const { path } = nodePaths(directory);
  await localDisk.makeDirectory(path);
  const unlock = await localDisk.lock(path);
  return { disk: { ...localDisk, lock: async () => async () => undefined }, unlock };
}

/** The identity of a new node and the state that its log begins after. */
export interface NewNode {
  readonly clusterId: string;
  /** Unique among all nodes, past and present: a node on a new disk is a new node. */
  readonly nodeId: NodeId;
  /** Index 0 and the first configuration for a new cluster; an empty configuration for a node that joins a cluster. */
  readonly base: SnapshotMeta;
}

/**
 * Creates a node by writing its `node.state` in one step. The first start creates everything else, so a crash at any moment leaves
 * either no node or a complete one.
 * @throws StorageInUse; StorageDamaged as {@link hasNode} does; an error if the directory already holds a node
 */
export async function createNode(directory: string, { clusterId, nodeId, base }: NewNode, disk: Disk = localDisk): Promise<void> {
  const node = nodePaths(directory);
  await disk.makeDirectory(node.path);
  const unlock = await disk.lock(node.path);
  try {
    if (await hasNode(node.path, disk)) throw new Error(`${node.path} already holds a node`);
    await NodeStateFile.create(
      disk,
      { directory: node.path, path: node.nodeState },
      {
        clusterId,
        nodeId,
        incarnation: 0,
        term: base.term,
        vote: 0,
        generation: 1,
        base,
        firstSegment: 1,
        mark: { index: base.index, term: base.term, commit: base.index },
      },
    );
  } finally {
    await unlock();
  }
}
