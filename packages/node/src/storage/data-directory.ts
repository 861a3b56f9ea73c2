import { randomBytes, randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@transitd/cluster';
import { reasonOf, requireOwnerOnly, StartError } from '@transitd/process';
import { bootstrapBase, type NodeId, type SnapshotMeta } from '@transitd/raft-core';
import { createNode, hasNode, type LockedDirectory, lockNodeDirectory, StorageFailed, StorageInUse } from '@transitd/storage-fsm';
import { z } from 'zod';
import { RaftEngine, type StorageOptions } from './raft-engine.ts';

/** File with the process that ended with all its uses of keys recorded. */
const usageFile = 'usage';
const usageNote = z.object({ format: z.literal(1), process: z.string() });

/** The data directory of a node, locked by this process from `open` to `close`, whether it contains a node or not. */
export class DataDirectory {
  readonly #path: string;
  readonly #locked: LockedDirectory;

  private constructor(path: string, locked: LockedDirectory) {
    this.#path = path;
    this.#locked = locked;
  }

  /** @throws StartError when users other than its owner can access it, or it cannot be used; StorageInUse */
  static async open(path: string): Promise<DataDirectory> {
    try {
      if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === false) throw new StartError(`${path} is not a directory`);
      requireOwnerOnly(path);
      requireOwnerOnly(join(path, 'node.state'));
      return new DataDirectory(path, await lockNodeDirectory(path));
    } catch (error) {
      if (error instanceof StartError) throw new StartError(`data_dir: ${error.message}`);
      if (error instanceof StorageInUse) throw error;
      const { code, cause } = error as NodeJS.ErrnoException;
      // LevelDB's own code says nothing: the cause names the file and the system's error.
      const reason = cause === undefined && code !== undefined ? code : reasonOf(error);
      throw new StartError(`data_dir: ${path} cannot be used: ${reason}`);
    }
  }

  get path(): string {
    return this.#path;
  }

  /** Returns whether a node was created here. @throws StorageDamaged */
  holdsNode(): Promise<boolean> {
    return hasNode(this.#path);
  }

  /** Creates the first node of a new cluster, its only voter. */
  async bootstrapCluster(): Promise<void> {
    const nodeId = newNodeId();
    await createNode(this.#path, { clusterId: randomUUID(), nodeId, base: bootstrapBase(nodeId) }, this.#locked.disk);
  }

  /** Creates a node that a cluster has admitted: it receives its log and its configuration from the leader. */
  async joinCluster({ clusterId, nodeId }: { readonly clusterId: string; readonly nodeId: NodeId }): Promise<void> {
    await createNode(this.#path, { clusterId, nodeId, base: emptyBase }, this.#locked.disk);
  }

  /**
   * Opens the log and the records, without starting consensus.
   * @throws StorageDamaged, StorageInUse, StorageFailed, LogDamage
   */
  openStorage(options: StorageOptions): Promise<RaftEngine> {
    return RaftEngine.open({ ...options, directory: this.#path, disk: this.#locked.disk });
  }

  /**
   * Returns the process that {@link noteUsage} noted last; empty on a new data directory.
   * @throws errors of the file system; SyntaxError, ZodError for a note of another release
   */
  async notedUsage(): Promise<string> {
    const text = await readFile(join(this.#path, usageFile), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    return text === undefined ? '' : usageNote.parse(JSON.parse(text)).process;
  }

  /** Notes durably the process that has ended with all its uses of keys recorded. @throws StorageFailed */
  async noteUsage(process: string): Promise<void> {
    const note: z.input<typeof usageNote> = { format: 1, process };
    const path = join(this.#path, usageFile);
    try {
      await replaceFile(path, `${JSON.stringify(note)}\n`);
    } catch (cause) {
      throw new StorageFailed(`${path} cannot be written: ${reasonOf(cause)}`, { cause });
    }
  }

  close(): Promise<void> {
    return this.#locked.unlock();
  }
}

/** Returns 48 random bits, never 0. An id identifies one disk and is never used again. */
export const newNodeId = (): NodeId => randomBytes(6).readUIntBE(0, 6) || 1;

const emptyBase: SnapshotMeta = {
  index: 0,
  term: 0,
  conf: { voters: [], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false, context: new Uint8Array() },
  confIndex: 0,
};
