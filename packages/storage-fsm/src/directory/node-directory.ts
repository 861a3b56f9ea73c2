import { join, resolve } from 'node:path';
import type { NodeId, SnapshotMeta } from '@transitd/raft-core';
import { damaged } from '../errors.ts';
import { type Disk, localDisk } from './disk.ts';
import { NodeStateFile } from './node-state.ts';

/** Where a node keeps its things. A generation is one whole copy of log and state; `node.state` names the one in force. */
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

/** Deletes all generations but the one in force: what a snapshot has taken the place of, or left half made. */
export async function removeOtherGenerations(disk: Disk, directory: string, inForce: number): Promise<void> {
  const { path } = nodePaths(directory);
  const names = (await disk.list(path)) ?? [];
  const others = names.filter((name) => name.startsWith(generationPrefix) && name !== `${generationPrefix}${inForce}`);
  if (others.length === 0) return;
  for (const name of others) await disk.removeDirectory(join(path, name));
  await disk.syncDirectory(path);
}

/**
 * Whether a node was made in this directory.
 * @throws StorageDamaged if there is data of a node, but not what the node must know of itself
 */
export async function hasNode(directory: string, disk: Disk = localDisk): Promise<boolean> {
  const { path, nodeState } = nodePaths(directory);
  const names = (await disk.list(path)) ?? [];
  if (names.includes('node.state')) return true;
  if (names.some((name) => name.startsWith(generationPrefix)))
    throw damaged(nodeState, 'is missing although the data of a node is there');
  return false;
}

/** A node's directory in the hands of this process until `unlock`. */
export interface LockedDirectory {
  /** For `createNode` and `SegmentLog.open` meanwhile: it takes no second lock. */
  readonly disk: Disk;
  readonly unlock: () => Promise<void>;
}

/** Makes the directory if there is none, and locks it, whether it holds a node or not. @throws StorageInUse */
export async function lockNodeDirectory(directory: string): Promise<LockedDirectory> {
  const { path } = nodePaths(directory);
  await localDisk.makeDirectory(path);
  const unlock = await localDisk.lock(path);
  return { disk: { ...localDisk, lock: async () => async () => undefined }, unlock };
}

/** What a node is from its birth on. */
export interface NewNode {
  readonly clusterId: string;
  /** Never used by another node, and never again: a new disk is a new node. */
  readonly nodeId: NodeId;
  /** Index 0 and the first configuration for a new cluster; an empty configuration for a node that joins one. */
  readonly base: SnapshotMeta;
}

/**
 * Makes a node: its `node.state`, in one step. The rest is made when it is opened first, so that a crash at any moment leaves no
 * node or a whole one.
 * @throws StorageInUse, StorageDamaged as `hasNode`, or an error if there is a node already
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
