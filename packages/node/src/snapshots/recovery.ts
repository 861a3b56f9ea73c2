import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { decodeMembership, overtakenFile, removalFile } from '@transitd/cluster';
import { requireOwner, requireOwnerOnly, StartError } from '@transitd/process';
import type { ConfState, NodeId } from '@transitd/raft-core';
import { archiveOf, noProof, sumsOf } from '@transitd/snapshot-archive';
import {
  hasNode,
  inspectSnapshot,
  type RecoveredState,
  type RecoveryOptions,
  StorageInUse,
  UnsupportedLevel,
  withRecoveredState,
} from '@transitd/storage-fsm';
import { partsOf } from './snapshots.ts';

/** A state read from a node's disk, completely and without damage. */
export interface Recovery {
  readonly state: RecoveredState;
  /** The node's `node_id`, from the membership list. */
  readonly name: string | undefined;
  /** Whether the newest readable configuration includes the node, and no member has reported to the node that it was removed. */
  readonly isMember: boolean;
  /** Whether a member has reported to the node that its disk is an older state or a copy (decision 72). */
  readonly isOvertaken: boolean;
  readonly records: number;
  /** Returns the archive as `GET sys/storage/raft/snapshot` does, but without a proof: the root key is not on the disk. */
  readonly archive: () => Readable;
}

/**
 * Calls `use` with the state in the data directory of a stopped node.
 * @throws StartError when the directory cannot be used or a node runs on it; StorageDamaged, StorageFailed; what `use` throws
 */
export async function withRecovery<T>(
  directory: string,
  options: RecoveryOptions,
  use: (recovery: Recovery) => Promise<T>,
): Promise<T> {
  await requireStoppedNode(directory);
  try {
    return await withRecoveredState(directory, options, async (state) => use(await recoveryOf(directory, state)));
  } catch (error) {
    if (error instanceof UnsupportedLevel) throw new StartError(error.message);
    if (error instanceof StorageInUse) throw new StartError(`${error.message}: stop the node first`);
    throw error;
  }
}

async function requireStoppedNode(directory: string): Promise<void> {
  try {
    if (!(await hasNode(directory))) throw new StartError(`${directory} holds no node`);
    requireOwner(directory);
    requireOwnerOnly(directory);
    requireOwnerOnly(join(directory, 'node.state'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new StartError(`${directory} cannot be used: ${code}`);
  }
}

async function recoveryOf(directory: string, state: RecoveredState): Promise<Recovery> {
  const sum = createHash('sha256');
  let bytes = 0;
  const measured = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of state.stream()) {
      bytes += chunk.length;
      sum.update(chunk);
      yield chunk;
    }
  };
  const summary = await inspectSnapshot(measured());
  const { records } = summary;
  if (records === 0) throw new StartError(`${directory} holds no record to recover`);
  const parts = partsOf(state.clusterId, summary, { bytes, sha256: sum.digest('hex') });
  return {
    state,
    name: state.conf && nameOf(state.nodeId, state.conf),
    isMember: (state.conf === undefined || isMember(state.nodeId, state.conf)) && !existsSync(join(directory, removalFile)),
    isOvertaken: existsSync(join(directory, overtakenFile)),
    records,
    archive: () => archiveOf({ ...parts, sums: sumsOf(parts), proof: noProof }, state.stream()),
  };
}

function nameOf(node: NodeId, { context }: ConfState): string | undefined {
  try {
    return decodeMembership(context).members.find(({ id }) => id === node)?.name;
  } catch {
    return undefined; // a membership list of another version; the recovery does not depend on the list
  }
}

const isMember = (node: NodeId, { voters, votersOutgoing, learners, learnersNext }: ConfState): boolean =>
  [voters, votersOutgoing, learners, learnersNext].some((list) => list.includes(node));
