import type {
  Done,
  Entry,
  HardState,
  LogIndex,
  LogStore,
  LogWrite,
  NodeId,
  SnapshotMeta,
  SnapshotTransfer,
  StateMachine,
} from '@transitd/raft-core';
import type { SimRandom } from '../../fakes/sim-random.ts';
import type { NodeProcess } from '../process/process.ts';
import type { Command, MachineResult } from './command.ts';

/** The error of a broken disk; every other error that stops a node fails the run. */
export class DiskError extends Error {
  override readonly name = 'DiskError';
}

/** A lower bound of the state on a node's disk, on which the checkers rely. */
export interface DurableLog {
  readonly nodeId: NodeId;
  readonly base: SnapshotMeta;
  /** Contiguous, from `base.index + 1` on. */
  readonly entries: readonly Entry[];
  readonly hardState: HardState;
  readonly lastIndex: LogIndex;
  entry(index: LogIndex): Entry | undefined;
}

/**
 * A whole durable state on its way to another node. All nodes of a cluster use the same kind of storage, which alone knows the content.
 */
export interface StateImage {
  readonly applied: LogIndex;
  /** Number of pieces in which the state is streamed. */
  readonly pieces: number;
  readonly content: unknown;
}

export interface AppliedEntry {
  readonly index: LogIndex;
  /** Digest of the current state, or of the whole history up to it; equal on all nodes. */
  readonly digest: number;
  /** Number of the client's write in the entry. */
  readonly operation?: number;
}

/**
 * Parts of a disk with a pace of their own: the log's entries, the state, and the node's record (term, vote and the log's high-water mark).
 */
export const diskParts = ['log', 'state', 'node'] as const;
export type DiskPart = (typeof diskParts)[number];

/** One incarnation of a node, as its storage sees it. */
export interface StorageRun {
  readonly process: NodeProcess;
  /** Returns how long the next sync, read or compaction takes, on the log's part of the disk by default. */
  delayMs(part?: DiskPart): number;
  /** Runs the callback of a simulated device as a task of the node's process. An exception in it ends the simulation. */
  enter(task: () => void): void;
  /** Called for every requested write. */
  onWrite(write: LogWrite): void;
  onApply(applied: AppliedEntry): void;
}

/** The state as the simulator's clients know it: registers and lists by key. */
export interface SimMachine extends StateMachine<MachineResult> {
  readonly applied: LogIndex;
  readonly digest: number;
  /** The last entry that was published: what other threads of the process can know. */
  readonly published: LogIndex;
  /** The last entry that is durable in the state, if known. */
  readonly flushed?: LogIndex;
  readonly isFlushing: boolean;
  /** The members by the newest applied configuration. */
  readonly members: ReadonlySet<NodeId>;
  /** Tombstones: the entry that removed an id from the cluster. */
  readonly removed: ReadonlyMap<NodeId, LogIndex>;
  /**
   * Returns the entry for a command, of about `size` bytes, and the request that it carries. The current state may decide which value a
   * swap expects.
   */
  prepare(command: Command, size: number): { readonly request: Command['request']; readonly data: Uint8Array };
  /** Reads the current values; calls `done` before the next event. */
  read(kind: 'register' | 'list', key: number, done: (values: readonly number[]) => void): void;
}

/** How a storage with its own streams requests a snapshot from another node. */
export interface SnapshotWire {
  /** Returns the output of that node's `stream`, chunk by chunk at the pace of the network; throws where the stream breaks. */
  open(from: NodeId, index: LogIndex): AsyncIterable<Uint8Array>;
}

/** Snapshots as bytes, for a storage that has a `SnapshotTransfer` of its own. */
export interface SnapshotStreams extends SnapshotTransfer {
  stream(peer: NodeId, index: LogIndex): AsyncIterable<Uint8Array>;
}

export interface OpenStorage {
  readonly log: LogStore;
  readonly machine: SimMachine;
  /** Absent if the simulator moves whole states as `images`. */
  readonly streams?: (wire: SnapshotWire) => SnapshotStreams;
}

/** Gives and takes whole durable states as values, which the simulator moves between nodes. */
export interface StateImages {
  /** Returns the durable state. */
  image(): StateImage;
  /** Installs in one step: the log begins after `meta`, the state is `image`. */
  install(snapshot: { readonly meta: SnapshotMeta; readonly image: StateImage }, done: Done): void;
}

/** Log and state of one node, over all its incarnations. */
export interface NodeStorage {
  readonly durable: DurableLog;
  /** An entry that is known to have been durable: a log that ends below it has lost its tail. */
  readonly mark: LogIndex;
  /** True if the next start must truncate a half-written end. */
  readonly isTorn: boolean;
  /** The number of pieces being synced. */
  readonly unsynced: number;
  /** Opens the storage; calls `done` at once or in a later event. */
  open(incarnation: StorageRun, done: (opened: OpenStorage | Error) => void): void;
  /** Simulates a power failure: part of what is being synced may be stored. `torn`: any part of it, otherwise a prefix. */
  crash(
    random: SimRandom,
    faults: { readonly torn: boolean },
  ): { readonly isLost: boolean; readonly facts: readonly (number | boolean)[] };
  /**
   * Ends the process while the operating system keeps running: written data can be read again, and is lost if the power fails before it
   * is synced.
   */
  kill(random: SimRandom): { readonly facts: readonly (number | boolean)[] };
  /** Makes the next write fail, and with it the storage; up to `landed` pieces of it are stored nevertheless. */
  failNext(error: Error, landed: number): void;
  /**
   * Makes the next sync fail, and with it the storage. The kernel then reports the pages as clean: they can be read until the power fails,
   * and no later sync writes them.
   */
  failSync(error: Error): void;
  /** Cancels a failure that has not happened yet. */
  mend(): void;
  /** Makes one of the two copies of the hard state unreadable, if the other is readable; the node is down. */
  rotSlot(slot: 0 | 1): void;
  /** Makes a durable entry unreadable; the node is down. Returns false if the entry is no longer there. */
  rotEntry(index: LogIndex): boolean;
  /** Absent if the storage streams its states itself ({@link OpenStorage}). */
  readonly images?: StateImages;
  /** Classifies an error of the storage itself, or of a start on it. */
  verdict(error: Error): 'damaged' | 'failed' | 'bug';
}

export type StorageMaker = (node: {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  readonly base: SnapshotMeta;
}) => NodeStorage;
