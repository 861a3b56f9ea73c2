import type { Clock, LogStart } from '@transitd/raft-core';
import { type Disk, localDisk } from '../directory/disk.ts';
import { hasNode, nodePaths, removeOtherGenerations } from '../directory/node-directory.ts';
import { NodeStateFile } from '../directory/node-state.ts';
import { damaged, type StorageFailed } from '../errors.ts';
import { type RecoveredLog, recoverLog } from './log-recovery.ts';
import type { LogView } from './log-view.ts';
import { segmentHeaderBytes } from './segment.ts';
import { type SegmentSizes, Segments } from './segments.ts';

export interface SegmentLogOptions extends Partial<SegmentSizes> {
  /** Called once, at the first failure of any operation: the process must end. */
  readonly onFailure?: (error: StorageFailed) => void;
  /** Schedules the refresh of the high-water mark; by default a timer that does not keep the process alive. */
  readonly every?: Clock['every'];
  readonly disk?: Disk;
}

const mebibyte = 1024 * 1024;
const defaults = { segmentBytes: 64 * mebibyte, growBytes: 4 * mebibyte, cacheBytes: 4 * mebibyte };
const groupBytesMax = 8 * mebibyte;

/** The parts of an open log. */
export interface OpenLog {
  readonly path: string;
  readonly disk: Disk;
  readonly sizes: SegmentSizes;
  readonly view: LogView;
  readonly segments: Segments;
  readonly nodeState: NodeStateFile;
  readonly start: LogStart;
  readonly stateDirectory: string;
  readonly logDirectory: string;
  readonly unlock: () => Promise<void>;
  /** Waiting writes share one sync up to this many bytes. */
  readonly groupBytes: number;
  readonly options: SegmentLogOptions;
}

/**
 * Opens the log of the node in `directory`: locks the directory, recovers the log, and increments the incarnation.
 * @throws StorageDamaged, StorageInUse, or an error of the disk; then no lock or file is held
 */
export async function openLog(directory: string, options: SegmentLogOptions): Promise<OpenLog> {
  const disk = options.disk ?? localDisk;
  const { path, nodeState } = nodePaths(directory);
  if (!(await hasNode(path, disk))) throw damaged(nodeState, 'is missing');
  const unlock = await disk.lock(path);
  return await openLocked(path, disk, options, unlock).catch(releasing(unlock));
}

async function openLocked(path: string, disk: Disk, options: SegmentLogOptions, unlock: () => Promise<void>): Promise<OpenLog> {
  const { log, state: stateOf, nodeState: nodeStatePath } = nodePaths(path);
  const sizes = { ...defaults, ...options };
  const nodeState = await NodeStateFile.open(disk, nodeStatePath);
  const { generation } = nodeState.value;
  const directory = log(generation);
  const found = await recoverLog({ disk, directory, state: nodeState.value }).catch(releasing(() => nodeState.close()));
  const segments = new Segments({ disk, directory }, sizes, found);
  await nodeState
    .replace((now) => {
      const { lastIndex } = found.view;
      const mark = { index: lastIndex, term: found.view.termAt(lastIndex) ?? now.term, commit: now.mark.commit };
      return { ...now, incarnation: now.incarnation + 1, mark };
    })
    .then(() => removeOtherGenerations(disk, path, generation)) // only now: a damaged newer slot would make the older generation current
    .catch(releasing(() => Promise.all([nodeState.close(), segments.close()])));
  return {
    path,
    disk,
    sizes,
    view: found.view,
    segments,
    nodeState,
    start: startOf(nodeState, found),
    stateDirectory: stateOf(generation),
    logDirectory: directory,
    unlock,
    groupBytes: Math.min(groupBytesMax, sizes.segmentBytes - segmentHeaderBytes),
    options,
  };
}

function startOf({ value }: NodeStateFile, { view, confEntries }: RecoveredLog): LogStart {
  const { nodeId, clusterId, incarnation, term, vote, base, mark } = value;
  return {
    nodeId,
    clusterId,
    incarnation,
    hardState: { term, vote, commit: Math.max(mark.commit, base.index) },
    base,
    lastIndex: view.lastIndex,
    bytes: view.bytes,
    terms: view.terms(),
    confEntries,
  };
}

/** Returns an error handler that releases what a failed opening holds and rethrows the error. */
const releasing =
  (release: () => Promise<unknown>) =>
  async (error: unknown): Promise<never> => {
    await release();
    throw error;
  };
