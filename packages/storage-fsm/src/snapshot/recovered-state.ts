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
import { KeyValueMachine } from '../state/key-value-machine.ts';
import { type ReplicationState, recoveredReplicationState, replicationRecordFault } from '../store/replication-state.ts';
import { writeSnapshot } from './snapshot-stream.ts';

/** The state on the disk of a stopped node, with every entry of its log applied. */
export interface RecoveredState {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  /** Index of the last applied entry. */
  readonly index: LogIndex;
  /** Term of the entry at `index`; undefined when the log was not read and `node.state` does not have the term either. */
  readonly term: Term | undefined;
  /** Configuration as of the entry at `index`; undefined when the log was not read. */
  readonly conf: ConfState | undefined;
  /** Highest index that this disk records as committed. Above `index` only when the log was not read. */
  readonly commitIndex: LogIndex;
  /** Highest index that this disk is known to have stored. */
  readonly storedIndex: LogIndex;
  /** Why the replication record could not be read: the state then counts as that of a cluster in no set. Undefined if it could. */
  readonly unreadableReplication: string | undefined;
  /** Returns the records in the format of `NodeSnapshots.backup`, the same bytes on every call. */
  stream(): AsyncGenerator<Uint8Array>;
}

export interface RecoveryOptions {
  /** Uses the records of the last flush and does not read the log. For a disk with a damaged log. */
  readonly withoutLog?: boolean;
}

/** Entries are read from the log in chunks of this many bytes. */
const readBytes = 8 * 1024 * 1024;

/**
 * Calls `use` with the state of a stopped node, treating every entry of its log as committed. The entries are applied in memory only:
 * the disk still holds only records of committed entries, and the node can be started as before. Reading the log increments the node's
 * incarnation.
 * @throws StorageInUse while a node runs in the directory; StorageDamaged; StorageFailed; errors of `use`
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
    return await (withoutLog ? withFlushedState(path, known, use) : withReplayedLog(path, disk, use));
  } finally {
    await unlock();
  }
}

async function readNodeState(disk: Disk, path: string): Promise<NodeState> {
  const file = await NodeStateFile.open(disk, path);
  await file.close();
  return file.value;
}

async function withReplayedLog<T>(path: string, disk: Disk, use: (state: RecoveredState) => Promise<T>): Promise<T> {
  const log = await readingLog(() => SegmentLog.open(path, { disk }));
  try {
    const { start, stateDirectory } = log;
    const conf = await readingLog(() => newestConf(start, path));
    return await withMachine(stateDirectory, start.base.index, async (machine, unreadableReplication) => {
      await readingLog(() => log.verifyAgainstState(machine.flushedAtOpen));
      const { commit } = start.hardState;
      for (let lo = machine.flushedAtOpen + 1; lo <= start.lastIndex; lo = machine.applied.appliedIndex + 1) {
        for (const entry of await readingLog(() => read(log, lo, start.lastIndex))) machine.apply(entry);
        machine.publish();
      }
      const meta = { index: start.lastIndex, term: start.terms.at(-1)?.term ?? start.base.term, ...conf };
      const commitIndex = Math.max(commit, machine.flushedAtOpen); // only committed entries are ever flushed
      return use({ ...recovered(machine, start, meta), commitIndex, storedIndex: start.lastIndex, unreadableReplication });
    });
  } finally {
    await new Promise<void>((resolve) => log.close(() => resolve())); // an error of closing does not matter: everything has been read
  }
}

function withFlushedState<T>(path: string, known: NodeState, use: (state: RecoveredState) => Promise<T>): Promise<T> {
  const { base, mark, generation } = known;
  return withMachine(nodePaths(path).state(generation), base.index, (machine, unreadableReplication) => {
    const index = machine.flushedAtOpen;
    const term = [base, mark].find((one) => one.index === index)?.term;
    // The lowest possible term and the last known configuration: restoring the stream uses neither.
    const meta = { ...base, index, term: term ?? base.term };
    const commitIndex = Math.max(base.index, mark.commit, index);
    const storedIndex = Math.max(mark.index, index);
    return use({ ...recovered(machine, known, meta), term, conf: undefined, commitIndex, storedIndex, unreadableReplication });
  });
}

const recovered = (
  machine: KeyValueMachine,
  { nodeId, clusterId }: Pick<NodeState, 'nodeId' | 'clusterId'>,
  meta: SnapshotMeta,
): Omit<RecoveredState, 'commitIndex' | 'storedIndex' | 'unreadableReplication'> => ({
  nodeId,
  clusterId,
  index: meta.index,
  term: meta.term,
  conf: meta.conf,
  stream: () => writeSnapshot(machine.appliedState(), meta),
});

async function withMachine<T>(
  directory: string,
  base: LogIndex,
  use: (machine: KeyValueMachine, unreadableReplication: string | undefined) => Promise<T>,
): Promise<T> {
  let unreadable: string | undefined;
  const decodeReplication = (bytes: Uint8Array): ReplicationState => {
    unreadable = replicationRecordFault(bytes);
    return recoveredReplicationState(bytes);
  };
  const machine = await KeyValueMachine.open({ directory, base, decodeReplication });
  try {
    return await use(machine, unreadable);
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
    throw damaged(path, `has an unreadable configuration at entry ${newest.index}`);
  }
}

const read = (log: SegmentLog, lo: LogIndex, hi: LogIndex): Promise<readonly Entry[]> =>
  new Promise((resolve, reject) =>
    log.read({ lo, hi, maxBytes: readBytes }, (error, entries) => (error === undefined ? resolve(entries) : reject(error))),
  );

/**
 * Throws LogUnreadable for a damaged or failing log, since the records may still be intact. For a log of a later version the error stays
 * NewerFormat.
 */
async function readingLog<T>(task: () => T | Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const isUnreadable = (error instanceof StorageDamaged && !(error instanceof NewerFormat)) || error instanceof StorageFailed;
    if (!isUnreadable) throw error;
    throw new LogUnreadable(error.message, { cause: error });
  }
}

/** The log of a node is damaged; its records have not been checked and may be recovered without the log. */
export class LogUnreadable extends StorageDamaged {}
