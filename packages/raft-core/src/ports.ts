import type { Entry, HardState, LogIndex, Message, NodeId, SnapshotMeta, Term } from './types.ts';

/**
 * Called exactly once, never before the call that took it has returned. With an error the node must stop: nothing that
 * depends on the effect may be acknowledged, and the effect is never tried again on the same handle (fail-stop).
 */
export type Done = (error?: Error) => void;

/** What a log holds when it is opened: all that a core needs to go on from there. */
export interface LogStart {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  /** Counter raised durably at each start; tells two runs of one node apart. */
  readonly incarnation: number;
  readonly hardState: HardState;
  readonly base: SnapshotMeta;
  /** `base.index` while the log is empty. */
  readonly lastIndex: LogIndex;
  /** Payload bytes of the entries above `base`, about. */
  readonly bytes: number;
  /** Terms of the entries above `base`, run-length: `firstIndex` ascending. */
  readonly terms: readonly { readonly term: Term; readonly firstIndex: LogIndex }[];
  /** Every configuration entry above `base`, committed or not. */
  readonly confEntries: readonly Entry[];
}

/**
 * One durable step. The hard state is durable before the entries are. Entries are contiguous; their first index may lie
 * at or below the last stored one and then supersedes everything from there, in one atomic step.
 */
export interface LogWrite {
  readonly hardState?: HardState;
  readonly entries: readonly Entry[];
}

/** The durable log and hard state. Writes become durable in the order of the calls; several may share one sync. */
export interface LogStore {
  readonly start: LogStart;
  write(write: LogWrite, done: Done): void;
  /** Stores a newer commit hint with some later write; costs no sync of its own. */
  noteCommit(index: LogIndex): void;
  /**
   * Entries `lo..hi` (inclusive), cut after `maxBytes` but never to none, as they are at the call: a later write that
   * supersedes them, or a later compaction, does not disturb it. An index that is not there is an error.
   */
  read(
    range: { lo: LogIndex; hi: LogIndex; maxBytes: number },
    done: (error: Error | undefined, entries: readonly Entry[]) => void,
  ): void;
  /** Forgets entries up to and including `base.index`, all applied and flushed by then. */
  compact(base: SnapshotMeta, done: Done): void;
  close(done: Done): void;
}

/**
 * What committed entries act on. `apply` is deterministic and synchronous: its result is visible to reads of this node at
 * once, and durable after a later `flush`. Two indexes therefore: applied (memory) and flushed (disk).
 */
export interface StateMachine<Result> {
  /** Index of the newest entry that was durable when this was opened. */
  readonly flushedAtOpen: LogIndex;
  /** Applies one committed entry; indexes ascend without gaps. `noop` and `conf` entries change no record but count. */
  apply(entry: Entry): Result;
  /** Makes everything applied so far durable in one atomic, synced step; answers with the index reached. */
  flush(done: (error: Error | undefined, flushed: LogIndex) => void): void;
}

/** Who takes in what a transport hears. */
export interface TransportReceiver {
  message(message: Message): void;
  /** Nothing can be sent to this peer for now; told once per attempt to connect. */
  unreachable(peer: NodeId): void;
}

/** Carries messages to peers. May lose, duplicate, delay and reorder them; never changes one. */
export interface Transport {
  send(messages: readonly Message[]): void;
  /** The one receiver of this node's messages; never called within `send`. */
  receive(receiver: TransportReceiver): void;
}

/** The leader's side of a transfer, as the driver answers for it. */
export interface SnapshotSource {
  /** What describes the state that is durable at `index`; sent ahead of its records. */
  describe(index: LogIndex): SnapshotMeta;
  /** The stream to `peer` broke or stood still. How long the peer takes to install is no failure. */
  failed(peer: NodeId): void;
}

/**
 * Moves a whole state from a leader to a peer that the log does not reach any more. Streams are the port's own affair: a
 * peer asks the leader, which opens a read snapshot of its durable state (at or above the index it offered).
 */
export interface SnapshotTransfer {
  /** Leader: streams to peers that ask from now on. */
  serve(source: SnapshotSource): void;
  /**
   * Follower: streams a snapshot of `from`, at `meta.index` or above, into a new generation (state and an empty log) beside
   * the one in force. `done` hears what arrived once it is durable, or undefined when the stream failed, which ends nothing
   * else. The returned function gives up: `done` is not called any more.
   */
  fetch(
    offer: { readonly from: NodeId; readonly meta: SnapshotMeta },
    done: (received: SnapshotMeta | undefined) => void,
  ): () => void;
  /**
   * Puts the fetched generation in force, in one atomic durable step: the `LogStore` then holds no entry and begins after
   * `meta`, the hard state stays, the `StateMachine` has applied and flushed `meta.index`. Nothing else is under way on either.
   */
  install(meta: SnapshotMeta, done: Done): void;
  /** The fetched generation is not needed any more. */
  discard(): void;
}

/** Monotonic time and the turns of the event loop. */
export interface Clock {
  /** Milliseconds from an arbitrary beginning; never falls; stands for real time on this node. */
  now(): number;
  /** Runs `task` once, after the input of the present turn has been taken in. */
  afterTurn(task: () => void): void;
  /** Runs `task` about every `intervalMs` until the returned function is called. */
  every(intervalMs: number, task: () => void): () => void;
}

export interface Random {
  /** Uniform integer in [0, 2^32). */
  uint32(): number;
}
