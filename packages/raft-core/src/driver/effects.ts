import type { RaftCore, Ready } from '../core/contract/raft-core.ts';
import type { LogIndex, Message } from '../types.ts';
import { Applier } from './applier.ts';
import type { DriverLimits } from './limits.ts';
import { type Finished, LogWork } from './log-work.ts';
import type { DriverOptions, DriverPorts } from './options.ts';
import type { Proposals } from './proposals.ts';
import type { Reads } from './reads.ts';
import { SnapshotWork } from './snapshot-work.ts';

export interface EffectsParts<Result> {
  readonly core: RaftCore;
  readonly ports: DriverPorts<Result>;
  readonly limits: DriverLimits;
  readonly options: Pick<DriverOptions, 'onConfiguration' | 'onConfCommitted' | 'onRemoved'>;
  readonly proposals: Proposals<Result>;
  readonly reads: Reads;
  /** Called when an effect of a port has completed; an event-loop turn follows. */
  readonly finished: Finished;
  /** Handles an event; an event-loop turn follows. */
  readonly input: (note: () => void) => void;
}

/** Carries out the core's effects through the ports, in the order that safety rests on (see `Driver`). */
export class Effects<Result> {
  readonly #parts: EffectsParts<Result>;
  readonly #applier: Applier<Result>;
  readonly #logWork: LogWork;
  readonly #snapshots: SnapshotWork;

  constructor(parts: EffectsParts<Result>) {
    const { core, limits, finished } = parts;
    const { log, stateMachine, clock, peers } = parts.ports;
    this.#parts = parts;
    this.#applier = new Applier(stateMachine, limits);
    this.#logWork = new LogWork({
      log,
      clock,
      core,
      limits,
      flushedIndex: stateMachine.flushedAtOpen,
      finished,
      send: (messages) => this.send(messages),
    });
    this.#snapshots = new SnapshotWork(peers?.snapshots);
  }

  get appliedIndex(): LogIndex {
    return this.#applier.appliedIndex;
  }
  get flushedIndex(): LogIndex {
    return this.#applier.flushedIndex;
  }
  /** Whether so few bytes are unflushed that entries may be applied ahead of the stable log. */
  get hasRoomAhead(): boolean {
    return this.#applier.hasRoomAhead;
  }
  /** Returns for how long the oldest write to the log has been under way, in ms; 0 without one. */
  get logStalledMs(): number {
    return this.#logWork.stalledMs;
  }
  /** Returns the median time of a write in the last seconds, in ms; undefined if nothing was written. */
  get writeMs(): number | undefined {
    return this.#logWork.writeMs;
  }
  /** Whether an operation is under way on the log or the state machine. */
  get isBusy(): boolean {
    return this.#logWork.isBusy || this.#applier.isFlushing;
  }
  get isInstalling(): boolean {
    return this.#snapshots.isInstalling;
  }
  /** Whether another event-loop turn would make progress without new input. */
  get hasMore(): boolean {
    return !this.#snapshots.isPending && (this.#parts.core.hasReady() || this.#applier.canApply);
  }

  /** Returns for how long the state machine's disk has held up applying, in ms. */
  stateStalledMs(nowMs: number): number {
    return this.#applier.stalledMs(nowMs);
  }

  /**
   * Carries out the next batch of effects, then applies, flushes and compacts. While a snapshot is pending, only installs it.
   * @param questions - sent together with the messages of the batch
   */
  proceed(questions: readonly Message[]): void {
    const { core } = this.#parts;
    if (!this.#snapshots.isPending && core.hasReady()) this.#carryOut(core.ready(), questions);
    else this.send(questions);
    if (this.#snapshots.isPending) this.#install();
    else this.#advance();
    this.#logWork.release();
  }

  send(messages: readonly Message[]): void {
    if (messages.length > 0) this.#parts.ports.peers?.transport.send(messages);
  }

  /** Ends the snapshot stream under way, if there is one. */
  giveUpFetch(): void {
    this.#snapshots.giveUp();
  }

  flush(): void {
    const { core, ports, finished } = this.#parts;
    this.#applier.flush({ stableIndex: core.status().stableIndex, clock: ports.clock }, (error, note) =>
      finished(error, () => {
        note();
        core.applied(this.#applier.flushedIndex);
      }),
    );
  }

  #carryOut(ready: Ready, questions: readonly Message[]): void {
    const { seq, events, readLog, immediate, commitHint, hardState, snapshot, entries, committed, fetch } = ready;
    const { options, ports, proposals, reads } = this.#parts;
    for (const event of events) {
      if (event.type === 'confChanged') options.onConfiguration?.(event.conf, event.index);
      else if (event.type === 'confCommitted') options.onConfCommitted?.(event.conf, event.index);
      else options.onRemoved?.(event.atIndex);
    }
    for (const request of readLog) this.#logWork.read(request);
    this.send([...immediate, ...questions]);
    if (commitHint !== undefined) ports.log.noteCommit(commitHint);
    if (snapshot !== undefined) {
      if (hardState !== undefined) this.#logWork.write({ hardState, entries: [] }, seq, { partial: true });
      this.#snapshots.wait(ready);
    } else {
      if (hardState !== undefined || entries.length > 0) {
        this.#logWork.write({ ...(hardState === undefined ? {} : { hardState }), entries }, seq);
      }
      this.#logWork.hold(seq, ready.afterPersist);
    }
    proposals.committed(committed);
    this.#applier.add(committed);
    if (fetch !== undefined) this.#fetch(fetch);
    reads.confirmed(ready.reads);
    reads.dropped(ready.droppedReads);
  }

  /** Applies committed entries to the state machine, and flushes the state machine to its disk from time to time. */
  #advance(): void {
    const { ports, limits, proposals, reads } = this.#parts;
    this.#applier.applyChunk(ports.clock, limits.applyChunkMs, (entry, result) => {
      this.#logWork.applied(entry);
      proposals.applied(entry, result);
    });
    reads.applied(this.#applier.appliedIndex);
    if (this.#applier.isIdle) this.#logWork.readNextToApply();
    if (this.#applier.isFlushDue(ports.clock.now())) this.flush();
    this.#logWork.compact(this.#applier.flushedIndex);
  }

  #fetch(offer: NonNullable<Ready['fetch']>): void {
    const { core, input } = this.#parts;
    this.#snapshots.fetch(offer, (received) =>
      input(() => {
        const isNeeded = core.snapshotReceived(received);
        if (received !== undefined && !isNeeded) this.#snapshots.discard();
      }),
    );
  }

  /** Installs a fetched snapshot once nothing else is under way, and then continues with the batch that contained it. */
  #install(): void {
    if (this.isBusy) return;
    const { core, proposals, finished } = this.#parts;
    this.#snapshots.begin((error, note, snapshot, { seq, entries, afterPersist }) =>
      finished(error, () => {
        note();
        this.#logWork.installed(snapshot.index);
        this.#applier.restored(snapshot.index);
        proposals.endUpTo(snapshot.index);
        this.#logWork.hold(seq, afterPersist);
        if (entries.length > 0) this.#logWork.write({ entries }, seq);
        else core.persisted(seq);
      }),
    );
  }
}
