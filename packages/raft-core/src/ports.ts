import type { Entry, HardState, LogIndex, Message, NodeId, SnapshotMeta, Term } from './types.ts';

/**
 * Called exactly once, and only after the call that took it has returned. With an error the node must stop: nothing that depends on the
 * effect may be acknowledged, and the effect is never retried on the same handle (fail-stop).
 */
export type Done = (error?: Error) => void;

/** The content of a log when it is opened: everything that a core needs to continue. */
export interface LogStart {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  /** Counter that each start increases durably. It distinguishes the incarnations of a node. */
  readonly incarnation: number;
  readonly hardState: HardState;
  readonly base: SnapshotMeta;
  /** `base.index` while the log is empty. */
  readonly lastIndex: LogIndex;
  /** Approximate payload bytes of the entries above `base`. */
  readonly bytes: number;
  /** Terms of the entries above `base`, run-length encoded: `firstIndex` ascending. */
  readonly terms: readonly { readonly term: Term; readonly firstIndex: LogIndex }[];
  /** Every configuration entry above `base`, committed or not. */
  readonly confEntries: readonly Entry[];
}

/**
 * One durable step. The hard state is durable before the entries. Entries are contiguous; the first may be at or below the last stored one,
 * and then supersedes everything from there in one atomic step.
 */
export interface LogWrite {
  readonly hardState?: HardState;
  readonly entries: readonly Entry[];
}

/** The durable log and hard state. Writes become durable in the order of the calls; several may share one sync. */
export interface LogStore {
  readonly start: LogStart;
  write(write: LogWrite, done: Done): void;
  /** Stores a newer commit hint with a later write; costs no sync of its own. */
  noteCommit(index: LogIndex): void;
  /**
   * Reads the entries `lo..hi` (inclusive) as they are at the call, cut after `maxBytes` but at least one; later writes and compactions do
   * not affect the result. A missing index is an error.
   */
  read(
    range: { lo: LogIndex; hi: LogIndex; maxBytes: number },
    done: (error: Error | undefined, entries: readonly Entry[]) => void,
  ): void;
  /** Deletes entries up to and including `base.index`, all of which are applied and flushed. */
  compact(base: SnapshotMeta, done: Done): void;
  close(done: Done): void;
}

/**
 * The state to which committed entries are applied. `apply` is deterministic and synchronous: its result is visible to reads of this node
 * at once, and durable after a later `flush`. Hence two indexes: applied (memory) and flushed (disk).
 */
export interface StateMachine<Result> {
  /** Index of the newest entry that was durable when the state machine was opened. */
  readonly flushedAtOpen: LogIndex;
  /** Applies one committed entry; indexes ascend without gaps. `noop` and `conf` entries change no record, but raise the applied index. */
  apply(entry: Entry): Result;
  /**
   * Reports everything applied since the last call to the observers of the state, such as caches and other threads. Called in the turn that
   * applied it, before anything else learns that it is applied: no proposal or read is answered and no lease is reported before.
   */
  publish(): void;
  /** Makes everything applied so far durable in one atomic, synced step; reports the index reached. */
  flush(done: (error: Error | undefined, flushed: LogIndex) => void): void;
}

/** Receives a transport's input. */
export interface TransportReceiver {
  message(message: Message): void;
  /** Reports that nothing can be sent to this peer for now; called once per attempt to connect. */
  unreachable(peer: NodeId): void;
  /**
   * Reports that this peer itself closed its connections (FIN or RST, never a time-out of this node) and refuses a new one: its process has
   * probably ended. May be called again for each further refusal.
   */
  refused(peer: NodeId): void;
}

/** Carries messages to peers. May lose, duplicate, delay and reorder them, but never changes one. */
export interface Transport {
  send(messages: readonly Message[]): void;
  /** Sets the only receiver of this node's messages; it is never called within `send`. */
  receive(receiver: TransportReceiver): void;
}

/** The leader's side of a snapshot transfer, served by the driver. */
export interface SnapshotSource {
  /** Returns the description of the state that is durable at `index`; sent before its records. */
  describe(index: LogIndex): SnapshotMeta;
  /** Reports that the stream to `peer` broke or stopped. A long installation on the peer is not a failure. */
  failed(peer: NodeId): void;
}

/**
 * Moves a whole state from a leader to a peer to which the leader's log no longer reaches back. The port decides how to stream: a peer asks
 * the leader, which opens a read snapshot of its durable state, at or above the index it offered.
 */
export interface SnapshotTransfer {
  /** On a leader: from now on streams to the peers that ask. */
  serve(source: SnapshotSource): void;
  /**
   * On a follower: streams a snapshot of `from`, at `meta.index` or above, into a new generation (state and an empty log) next to the
   * current one. `done` receives the description of the fetched snapshot once it is durable, or undefined if the stream failed; a failed
   * stream ends nothing else. The returned function cancels the fetch; `done` is not called after that.
   */
  fetch(
    offer: { readonly from: NodeId; readonly meta: SnapshotMeta },
    done: (received: SnapshotMeta | undefined) => void,
  ): () => void;
  /**
   * Installs the fetched generation in one atomic durable step: the `LogStore` then holds no entry and begins after `meta`, the hard state
   * stays, the `StateMachine` has applied and flushed `meta.index`. Nothing else is under way on either.
   */
  install(meta: SnapshotMeta, done: Done): void;
  /** Deletes the fetched generation, which is no longer needed. */
  discard(): void;
}

/** Monotonic time and the event loop's turns. */
export interface Clock {
  /** Returns milliseconds since an arbitrary start; never falls; follows real time on this node. */
  now(): number;
  /** Runs `task` once, after the input of the current turn has been received. */
  afterTurn(task: () => void): void;
  /** Runs `task` about every `intervalMs` until the returned function is called. */
  every(intervalMs: number, task: () => void): () => void;
}

export interface Random {
  /** Returns a uniform integer in [0, 2^32). */
  uint32(): number;
}
