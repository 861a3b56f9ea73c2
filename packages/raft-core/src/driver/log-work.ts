import type { LogReadRequest, RaftCore } from '../core/contract/raft-core.ts';
import type { Clock, LogStore, LogWrite } from '../ports.ts';
import type { Entry, LogIndex, Message } from '../types.ts';
import { Compaction } from './compaction.ts';
import type { DriverLimits } from './limits.ts';
import { Writes } from './writes.ts';

/** Called when an effect of a port has completed. An error stops the node; otherwise `note` is called and an event-loop turn follows. */
export type Finished = (error: Error | undefined, note: () => void) => void;

export interface LogWorkParts {
  readonly log: LogStore;
  readonly clock: Clock;
  readonly core: RaftCore;
  readonly limits: DriverLimits;
  /** The state machine's position on disk when the log was opened. */
  readonly flushedIndex: LogIndex;
  readonly finished: Finished;
  readonly send: (messages: readonly Message[]) => void;
}

/** The driver's work on the log: writes and the messages that wait for them, reads of old entries, compaction. */
export class LogWork {
  readonly #parts: LogWorkParts;
  readonly #writes = new Writes();
  readonly #compaction: Compaction;
  /** Committed entries are read only after the previous ones are applied, so that a long replay needs little memory. */
  #nextToApply: LogReadRequest | undefined;
  #reads = 0;
  #compacting = false;

  constructor(parts: LogWorkParts) {
    this.#parts = parts;
    this.#compaction = new Compaction(parts.limits, { ...parts.log.start, flushedIndex: parts.flushedIndex });
  }

  get isBusy(): boolean {
    return this.#writes.count > 0 || this.#reads > 0 || this.#compacting;
  }

  /** Returns for how long the oldest write has been under way, in ms; 0 without one. */
  get stalledMs(): number {
    return this.#writes.stalledMs(this.#parts.clock.now());
  }

  /** Returns the median time of a write in the last seconds, in ms; undefined if nothing was written. */
  get writeMs(): number | undefined {
    return this.#writes.typicalMs(this.#parts.clock.now());
  }

  /** Starts a write. Once it is durable, so is the batch `seq`, unless the write is `partial`: then more of the batch follows. */
  write(write: LogWrite, seq: number, { partial = false }: { readonly partial?: boolean } = {}): void {
    const { log, clock, core, finished } = this.#parts;
    this.#writes.begin(seq, clock.now());
    log.write(write, (error) =>
      finished(error, () => {
        this.#writes.end(seq, clock.now());
        if (!partial) core.persisted(seq);
        this.release();
      }),
    );
  }

  hold(seq: number, messages: readonly Message[]): void {
    this.#writes.hold(seq, messages);
  }

  /** Sends the messages that no write holds back any longer. */
  release(): void {
    this.#parts.send(this.#writes.release());
  }

  /**
   * Reads old entries. For a peer, reads them at once from the present log. For this node's state machine, reads them when the state
   * machine is ready.
   */
  read(request: LogReadRequest): void {
    if (request.for === 0) this.#nextToApply = request;
    else this.#read(request);
  }

  readNextToApply(): void {
    const request = this.#nextToApply;
    this.#nextToApply = undefined;
    if (request !== undefined) this.#read(request);
  }

  /** Notes that a snapshot replaced the log up to `index`, including the entries that were still to be read. */
  installed(index: LogIndex): void {
    this.#nextToApply = undefined;
    this.#compaction.noteBase(index);
  }

  applied(entry: Entry): void {
    this.#compaction.applied(entry);
  }

  compact(flushedIndex: LogIndex): void {
    if (this.#compacting) return;
    const { core, log, finished } = this.#parts;
    const { baseIndex } = core.status();
    const index = this.#compaction.target({ baseIndex, flushedIndex, peers: () => core.peers() });
    if (index === undefined) return;
    this.#compacting = true;
    const base = core.snapshotMeta(index);
    // The core is told first, so that it requests none of the entries that the disk is about to delete.
    core.compacted(base);
    this.#compaction.noteBase(index);
    log.compact(base, (error) =>
      finished(error, () => {
        this.#compacting = false;
      }),
    );
  }

  #read(request: LogReadRequest): void {
    const { log, core, limits, finished } = this.#parts;
    const { lo, hi } = request;
    this.#reads += 1;
    log.read({ lo, hi, maxBytes: limits.logReadBytesMax }, (error, entries) =>
      finished(error, () => {
        this.#reads -= 1;
        core.logRead(request, entries);
      }),
    );
  }
}
