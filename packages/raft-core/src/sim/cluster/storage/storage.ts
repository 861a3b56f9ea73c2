import type { Done, LogStore, LogWrite, SnapshotTransfer, StateMachine } from '../../../ports.ts';
import type { Entry, HardState, LogIndex, NodeId, SnapshotMeta } from '../../../types.ts';
import type { SimRandom } from '../../sim-random.ts';
import type { Command } from '../clients/command.ts';
import type { NodeProcess } from '../node/process.ts';
import type { MachineResult } from './machine.ts';

/** What a broken disk says; everything else that ends a node is a failure of the run. */
export class DiskError extends Error {
  override readonly name = 'DiskError';
}

/** What is certainly on a node's disk; there may be more. The checkers judge by it. */
export interface DurableLog {
  readonly nodeId: NodeId;
  readonly base: SnapshotMeta;
  /** Contiguous, from `base.index + 1` on. */
  readonly entries: readonly Entry[];
  readonly hardState: HardState;
  readonly lastIndex: LogIndex;
  entry(index: LogIndex): Entry | undefined;
}

/** A whole durable state on its way to another node. All nodes of a cluster have storage of one kind, which alone knows the content. */
export interface StateImage {
  readonly applied: LogIndex;
  /** In how many pieces it is streamed. */
  readonly pieces: number;
  readonly content: unknown;
}

export interface AppliedEntry {
  readonly index: LogIndex;
  /** Of the state as it is now, or of the whole history up to it: equal on all nodes. */
  readonly digest: number;
  /** Which client's write it was. */
  readonly operation?: number;
}

/** Parts of a disk with a pace of their own: the log's entries, the state, and the node's record (term, vote and the log's mark). */
export const diskParts = ['log', 'state', 'node'] as const;
export type DiskPart = (typeof diskParts)[number];

/** What one run of a node brings to its storage. */
export interface StorageRun {
  readonly process: NodeProcess;
  /** How long the next sync, read or compaction takes; of the log unless said. */
  delayMs(part?: DiskPart): number;
  /** Runs what a device has to say in the node's process; whatever that throws ends the simulation. */
  enter(task: () => void): void;
  /** Hears of every write as it is asked for. */
  onWrite(write: LogWrite): void;
  onApply(applied: AppliedEntry): void;
}

/** The state as the simulator's clients know it: registers and lists by key. */
export interface SimMachine extends StateMachine<MachineResult> {
  readonly applied: LogIndex;
  readonly digest: number;
  /** Last entry that is durable in it, where that is known. */
  readonly flushed?: LogIndex;
  readonly isFlushing: boolean;
  /** Tombstones: the entry that took an id out of the cluster. */
  readonly removed: ReadonlyMap<NodeId, LogIndex>;
  /** The entry that asks for it, of about `size` bytes, and what it asks for: what a swap expects may be judged by the state as it is here. */
  prepare(command: Command, size: number): { readonly request: Command['request']; readonly data: Uint8Array };
  /** The values as of now, told before the next event. */
  read(kind: 'register' | 'list', key: number, done: (values: readonly number[]) => void): void;
}

/** How a storage that streams its states by itself asks another node for one. */
export interface SnapshotWire {
  /** What that node's `stream` gives, chunk by chunk at the pace of the network; throws where it breaks. */
  open(from: NodeId, index: LogIndex): AsyncIterable<Uint8Array>;
}

/** Snapshots as bytes: what a storage brings that has a `SnapshotTransfer` of its own. */
export interface SnapshotStreams extends SnapshotTransfer {
  stream(peer: NodeId, index: LogIndex): AsyncIterable<Uint8Array>;
}

export interface OpenStorage {
  readonly log: LogStore;
  readonly machine: SimMachine;
  /** Absent where the simulator moves whole states as `images`. */
  readonly streams?: (wire: SnapshotWire) => SnapshotStreams;
}

/** Durable states as values, for the simulator to move. */
export interface StateImages {
  /** The durable state. */
  image(): StateImage;
  /** In one step: the log begins after `meta`, the state is `image`. */
  install(snapshot: { readonly meta: SnapshotMeta; readonly image: StateImage }, done: Done): void;
}

/** Log and state of one node, over all its runs. */
export interface NodeStorage {
  readonly durable: DurableLog;
  /** An entry that is known to have been durable: a log that ends below it has lost its tail. */
  readonly mark: LogIndex;
  /** The next start has to cut off what a crash left half written. */
  readonly isTorn: boolean;
  /** Pieces of what is being synced. */
  readonly unsynced: number;
  /** Answers at once or in a later event. */
  open(run: StorageRun, done: (opened: OpenStorage | Error) => void): void;
  /** The power goes: of what is being synced some may be there. `torn`: any part of it, else a beginning. */
  crash(
    random: SimRandom,
    faults: { readonly torn: boolean },
  ): { readonly isLost: boolean; readonly facts: readonly (number | boolean)[] };
  /** The process dies, and the system goes on: what was written is read again, and is lost if the power goes before it is synced. */
  kill(random: SimRandom): { readonly facts: readonly (number | boolean)[] };
  /** The next write fails, and with it the storage; up to `landed` pieces of it are on the disk all the same. */
  failNext(error: Error, landed: number): void;
  /** What was to fail, and has not yet, does not any more. */
  mend(): void;
  /** One of the two copies of the hard state turns unreadable, if the other is readable; the node is down. */
  rotSlot(slot: 0 | 1): void;
  /** A durable entry turns unreadable; the node is down. False if it is not there any more. */
  rotEntry(index: LogIndex): boolean;
  /** Absent where the storage streams its states by itself ({@link OpenStorage}). */
  readonly images?: StateImages;
  /** What an error of its own, or of a start on what it holds, means. */
  verdict(error: Error): 'damaged' | 'failed' | 'bug';
}

export type StorageMaker = (node: {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  readonly base: SnapshotMeta;
}) => NodeStorage;
