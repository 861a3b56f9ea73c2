import {
  CodecError,
  type ConfState,
  decodeConfState,
  type Entry,
  type LogIndex,
  type LogStart,
  type NodeId,
  type SnapshotMeta,
  type Term,
} from '@transitd/raft-core';
import type { Disk } from '../directory/disk.ts';
import { hasNode, lockNodeDirectory, nodePaths } from '../directory/node-directory.ts';
import { type NodeState, NodeStateFile } from '../directory/node-state.ts';
import { damaged, NewerFormat, StorageDamaged, StorageFailed } from '../errors.ts';
import { SegmentLog } from '../log/segment-log.ts';
import { KeyValueMachine } from '../state/state-machine.ts';
import { writeSnapshot } from './snapshot-stream.ts';

/** All that the disk of a stopped node holds: its records, brought up to the last entry of its log. */
export interface RecoveredState {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  /** The last entry that the records are of. */
  readonly index: LogIndex;
  /** Undefined when the log was left out and nothing else tells it. */
  readonly term: Term | undefined;
  /** As of that entry; undefined when the log was left out. */
  readonly conf: ConfState | undefined;
  /** Highest index that this disk knows to be committed. Above `index` only when the log was left out. */
  readonly commitIndex: LogIndex;
  /** Highest index that this disk is known to have held. */
  readonly storedIndex: LogIndex;
  /** The records as `NodeSnapshots.backup` gives them, each time the same bytes. */
  stream(): AsyncGenerator<Uint8Array>;
}

export interface RecoveryOptions {
  /** Takes the records as they were last flushed, and leaves the log unread: for a log that is damaged. */
  readonly withoutLog?: boolean;
}

/** Bytes of entries that are read at once. */
const readBytes = 8 * 1024 * 1024;

/**
 * Gives `use` the state of a stopped node, every entry of its log taken as committed. These stay in memory: the records on the disk are
 * those of committed entries before and after, and the node can be started as ever. It counts one more start when the log is read.
 * @throws StorageInUse while a node runs there, StorageDamaged, StorageFailed; what `use` throws
 */
export async function withRecoveredState<T>(
  directory: string,
  { withoutLog = false }: RecoveryOptions,
  use: (state: RecoveredState) => Promise<T>,
): Promise<T> {
  const { path, nodeState } = nodePaths(directory);
  if (!(await hasNode(path))) throw damaged(nodeState, 'is missing');
  const { disk, unlock } = await lockNodeDirectory(path);
  try {
    const known = await readNodeState(disk, nodeState);
    return await (withoutLog ? usingRecords(path, known, use) : usingLog(path, disk, use));
  } finally {
    await unlock();
  }
}

async function readNodeState(disk: Disk, path: string): Promise<NodeState> {
  const file = await NodeStateFile.open(disk, path);
  await file.close();
  return file.value;
}

async function usingLog<T>(path: string, disk: Disk, use: (state: RecoveredState) => Promise<T>): Promise<T> {
  const log = await ofTheLog(() => SegmentLog.open(path, { disk }));
  try {
    const { start, stateDirectory } = log;
    const conf = await ofTheLog(() => newestConf(start, path));
    return await usingMachine(stateDirectory, start.base.index, async (machine) => {
      await ofTheLog(() => log.verifyAgainstState(machine.flushedAtOpen));
      const { commit } = start.hardState;
      for (let lo = machine.flushedAtOpen + 1; lo <= start.lastIndex; lo = machine.applied.appliedIndex + 1)
        for (const entry of await ofTheLog(() => read(log, lo, start.lastIndex))) machine.apply(entry);
      const meta = { index: start.lastIndex, term: start.terms.at(-1)?.term ?? start.base.term, ...conf };
      const commitIndex = Math.max(commit, machine.flushedAtOpen); // only what is committed is ever flushed
      return use({ ...recovered(machine, start, meta), commitIndex, storedIndex: start.lastIndex });
    });
  } finally {
    await new Promise<void>((resolve) => log.close(() => resolve())); // all that was wanted of it is read
  }
}

function usingRecords<T>(path: string, known: NodeState, use: (state: RecoveredState) => Promise<T>): Promise<T> {
  const { base, mark, generation } = known;
  return usingMachine(nodePaths(path).state(generation), base.index, (machine) => {
    const index = machine.flushedAtOpen;
    const term = [base, mark].find((one) => one.index === index)?.term;
    // The least that it can be, and the configuration that is known: who restores the stream looks at neither.
    const meta = { ...base, index, term: term ?? base.term };
    const commitIndex = Math.max(base.index, mark.commit, index);
    const storedIndex = Math.max(mark.index, index);
    return use({ ...recovered(machine, known, meta), term, conf: undefined, commitIndex, storedIndex });
  });
}

const recovered = (
  machine: KeyValueMachine,
  { nodeId, clusterId }: Pick<NodeState, 'nodeId' | 'clusterId'>,
  meta: SnapshotMeta,
): Omit<RecoveredState, 'commitIndex' | 'storedIndex'> => ({
  nodeId,
  clusterId,
  index: meta.index,
  term: meta.term,
  conf: meta.conf,
  stream: () => writeSnapshot(machine.appliedState(), meta),
});

async function usingMachine<T>(directory: string, base: LogIndex, use: (machine: KeyValueMachine) => Promise<T>): Promise<T> {
  const machine = await KeyValueMachine.open({ directory, base });
  try {
    return await use(machine);
  } finally {
    await machine.close();
  }
}

/** @throws StorageDamaged */
function newestConf({ base, confEntries }: LogStart, path: string): Pick<SnapshotMeta, 'conf' | 'confIndex'> {
  const newest = confEntries.at(-1);
  if (newest === undefined) return { conf: base.conf, confIndex: base.confIndex };
  try {
    return { conf: decodeConfState(newest.data), confIndex: newest.index };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    throw damaged(path, `has a configuration at entry ${newest.index} that cannot be read`);
  }
}

const read = (log: SegmentLog, lo: LogIndex, hi: LogIndex): Promise<readonly Entry[]> =>
  new Promise((resolve, reject) =>
    log.read({ lo, hi, maxBytes: readBytes }, (error, entries) => (error === undefined ? resolve(entries) : reject(error))),
  );

/** Damage of the log, or of the disk below it, is not the end: the records may be whole. A log of a later version is. */
async function ofTheLog<T>(task: () => T | Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const isOfTheLog = (error instanceof StorageDamaged && !(error instanceof NewerFormat)) || error instanceof StorageFailed;
    if (!isOfTheLog) throw error;
    throw new LogUnreadable(error.message, { cause: error });
  }
}

/** The log of a node is damaged; its records were not looked at, and may be taken without it. */
export class LogUnreadable extends StorageDamaged {}
