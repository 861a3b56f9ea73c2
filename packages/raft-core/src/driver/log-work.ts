import type { LogReadRequest, RaftCore } from '../core/raft-core.ts';
import type { Clock, LogStore, LogWrite } from '../ports.ts';
import type { Entry, LogIndex, Message } from '../types.ts';
import { Compaction } from './compaction.ts';
import type { DriverLimits } from './limits.ts';
import { Writes } from './writes.ts';

/** How the end of an effect of a port comes back in: an error stops the node, else `note` is done and a turn follows. */
export type Finished = (error: Error | undefined, note: () => void) => void;

export interface LogWorkParts {
  readonly log: LogStore;
  readonly clock: Clock;
  readonly core: RaftCore;
  readonly limits: DriverLimits;
  /** What the state machine had on disk when the log was opened. */
  readonly flushedIndex: LogIndex;
  readonly finished: Finished;
  readonly send: (messages: readonly Message[]) => void;
}

/** What the driver does with the log: writes and what waits for them, reads of old entries, compaction. */
export class LogWork {
  readonly #parts: LogWorkParts;
  readonly #writes = new Writes();
  readonly #compaction: Compaction;
  /** Committed entries are read when what was read before is applied, so that a long replay stays small in memory. */
  #wanted: LogReadRequest | undefined;
  #reads = 0;
  #compacting = false;

  constructor(parts: LogWorkParts) {
    this.#parts = parts;
    this.#compaction = new Compaction(parts.limits, { ...parts.log.start, flushedIndex: parts.flushedIndex });
  }

  get isBusy(): boolean {
    return this.#writes.count > 0 || this.#reads > 0 || this.#compacting;
  }

  /** For how long the oldest write has been under way; 0 without one. */
  get stalledMs(): number {
    return this.#writes.stalledMs(this.#parts.clock.now());
  }

  /** Returns the median time that a write took in the last seconds, in ms; undefined where nothing was written. */
  get writeMs(): number | undefined {
    return this.#writes.typicalMs(this.#parts.clock.now());
  }

  /** The batch `seq` is durable with this write, unless it is only `partial`: then more of the batch follows. */
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

  /** Sends what no write holds back any more. */
  release(): void {
    this.#parts.send(this.#writes.release());
  }

  /** Reads for a peer at once, from the log as it is now; for the own state machine when that has room. */
  read(request: LogReadRequest): void {
    if (request.for === 0) this.#wanted = request;
    else this.#read(request);
  }

  readWanted(): void {
    const wanted = this.#wanted;
    this.#wanted = undefined;
    if (wanted !== undefined) this.#read(wanted);
  }

  /** A snapshot has taken the place of the log up to `index`, and of what was still to be read. */
  installed(index: LogIndex): void {
    this.#wanted = undefined;
    this.#compaction.begins(index);
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
    // First the core, so that it asks for none of the entries that the disk is about to forget.
    core.compacted(base);
    this.#compaction.begins(index);
    log.compact(base, (error) =>
      finished(error, () => {
        this.#compacting = false;
      }),
    );
  }

  #read({ for: reader, lo, hi }: LogReadRequest): void {
    const { log, core, limits, finished } = this.#parts;
    this.#reads += 1;
    log.read({ lo, hi, maxBytes: limits.logReadBytesMax }, (error, entries) =>
      finished(error, () => {
        this.#reads -= 1;
        core.logRead(reader, entries);
      }),
    );
  }
}
