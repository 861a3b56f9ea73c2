import { Raft } from '../core/raft.ts';
import type { RaftCore, Ready } from '../core/raft-core.ts';
import type { Clock, Done, LogStore, StateMachine } from '../ports.ts';
import type { LogIndex } from '../types.ts';
import { Applier } from './applier.ts';
import { type DriverLimits, driverLimits } from './limits.ts';
import type { DriverStatus, RefusalReason } from './outcome.ts';
import { type ProposalDone, Proposals } from './proposals.ts';
import { type ReadDone, Reads } from './reads.ts';

export interface DriverPorts<Result> {
  readonly log: LogStore;
  readonly stateMachine: StateMachine<Result>;
  readonly clock: Clock;
}

export interface DriverOptions {
  /**
   * Called once, after every waiter has had its outcome, when a port failed or a rule was broken. The node has stopped; the
   * process must end and start again from the disk.
   */
  onFatal(error: Error): void;
  /** Called when role, term, leader or readiness changed. */
  onStatus?(status: DriverStatus): void;
  readonly limits?: Partial<DriverLimits>;
  /** Checks the core's invariants after every turn; for tests and soak runs. */
  readonly checkInvariants?: boolean;
}

interface Stopping {
  readonly dones: Done[];
  phase: 'finishing' | 'closing' | 'closed';
}

/**
 * Owns a core and the ports, and carries out the core's effects in the order that safety rests on: hard state before entries
 * (the log's promise), nothing acknowledged to the core before it is durable, nothing applied that is not stable. All work is
 * done in turns of the event loop; between turns only the results of ports are noted.
 */
export class Driver<Result> {
  readonly #log: LogStore;
  readonly #clock: Clock;
  readonly #options: DriverOptions;
  readonly #limits: DriverLimits;
  readonly #core: RaftCore;
  readonly #applier: Applier<Result>;
  readonly #proposals = new Proposals<Result>();
  readonly #reads = new Reads();

  #turnPlanned = false;
  #endTicks: (() => void) | undefined;
  #writesInFlight = 0;
  /** A read of old entries waits here until what was read before is applied, so that a long replay stays small in memory. */
  #logReadWanted: { readonly lo: LogIndex; readonly hi: LogIndex } | undefined;
  #logReading = false;
  #compacting = false;
  /** Present once `stop` was called. */
  #stopping: Stopping | undefined;
  #fatal: Error | undefined;
  #announced = '';

  /** @throws LogDamage, InvariantViolation when the stored log cannot be run on */
  constructor({ log, stateMachine, clock }: DriverPorts<Result>, options: DriverOptions) {
    this.#log = log;
    this.#clock = clock;
    this.#options = options;
    this.#limits = { ...driverLimits, ...options.limits };
    this.#core = new Raft(log.start, { applied: stateMachine.flushedAtOpen, limits: this.#limits });
    this.#applier = new Applier(stateMachine, this.#limits.unflushedBytesMax);
  }

  /** Begins to work; called once. */
  start(): void {
    this.#endTicks = this.#clock.every(this.#limits.tickMs, () => this.#wake());
    this.#wake();
  }

  /** Proposes an entry. `data` must not change afterwards. `done` is called once, after this call has returned. */
  propose(data: Uint8Array, done: ProposalDone<Result>): void {
    const reason = this.#refusal() ?? (this.#proposals.size >= this.#limits.inFlightMax ? 'busy' : undefined);
    if (reason !== undefined) {
      this.#clock.afterTurn(() => done({ kind: 'refused', reason }));
      return;
    }
    this.#proposals.queue(data, done);
    this.#wake();
  }

  /** Asks for a linearizable read of this node's state. `done` is called once, after this call has returned. */
  readIndex(done: ReadDone): void {
    const reason = this.#refusal();
    if (reason !== undefined) {
      this.#clock.afterTurn(() => done({ kind: 'refused', reason }));
      return;
    }
    this.#reads.ask(done);
    this.#wake();
  }

  status(): DriverStatus {
    const { role, term, leader, lastIndex, commitIndex, termStartIndex } = this.#core.status();
    const { appliedIndex, flushedIndex } = this.#applier;
    const { nodeId, clusterId } = this.#log.start;
    const ready = termStartIndex !== undefined && appliedIndex >= termStartIndex && this.#stopping === undefined;
    return { nodeId, clusterId, role, ready, term, leader, lastIndex, commitIndex, appliedIndex, flushedIndex };
  }

  /**
   * Takes no new requests, answers the proposals it has, flushes the state machine and closes the log. Waiting reads are
   * refused. `done` hears of an error if the node fails, or had failed, before all that is done.
   */
  stop(done: Done): void {
    const settled = this.#fatal !== undefined || this.#stopping?.phase === 'closed';
    if (settled) {
      this.#clock.afterTurn(() => done(this.#fatal));
      return;
    }
    this.#stopping ??= { dones: [], phase: 'finishing' };
    this.#stopping.dones.push(done);
    this.#wake();
  }

  #refusal(): RefusalReason | undefined {
    if (this.#fatal !== undefined) return 'faulty';
    return this.#stopping === undefined ? undefined : 'stopped';
  }

  /** Plans one turn, after all input that has arrived by now: proposals of one turn of the event loop become one write. */
  #wake(): void {
    if (this.#turnPlanned) return;
    this.#turnPlanned = true;
    this.#clock.afterTurn(() => {
      this.#turnPlanned = false;
      this.#enter(() => this.#turn());
    });
  }

  /** The one way in for everything that happens: whatever goes wrong inside stops the node, and a stopped node hears nothing. */
  #enter(task: () => void): void {
    if (this.#fatal !== undefined) return;
    try {
      task();
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** The end of one effect of a port. */
  #finished(error: Error | undefined, note: () => void): void {
    this.#enter(() => {
      if (error !== undefined) throw error;
      note();
      this.#wake();
    });
  }

  #turn(): void {
    if (this.#stopping !== undefined && this.#windDown(this.#stopping)) return;
    this.#proposals.submit((data) => this.#core.propose(data));
    this.#reads.submit((ctx) => this.#core.readIndex(ctx));
    // After the input: what has just arrived may already answer a deadline that a stalled event loop is late for.
    this.#core.tick(this.#clock.now());
    if (this.#core.hasReady()) this.#carryOut(this.#core.ready());
    this.#applier.applyChunk(this.#clock, this.#limits.applyChunkMs, (entry, result) => this.#proposals.applied(entry, result));
    this.#reads.applied(this.#applier.appliedIndex);
    this.#readOldEntries();
    this.#flush();
    this.#compact();
    if (this.#options.checkInvariants === true) this.#core.checkInvariants();
    this.#announce();
    if (this.#core.hasReady() || this.#applier.canApply) this.#wake();
  }

  #carryOut({ seq, commitHint, hardState, entries, committed, readLog, reads }: Ready): void {
    if (commitHint !== undefined) this.#log.noteCommit(commitHint);
    if (hardState !== undefined || entries.length > 0) {
      this.#writesInFlight += 1;
      this.#log.write({ ...(hardState === undefined ? {} : { hardState }), entries }, (error) =>
        this.#finished(error, () => {
          this.#writesInFlight -= 1;
          this.#core.persisted(seq);
        }),
      );
    }
    this.#applier.add(committed);
    if (readLog !== undefined) this.#logReadWanted = readLog;
    this.#reads.confirmed(reads);
  }

  #readOldEntries(): void {
    const range = this.#logReadWanted;
    if (range === undefined || !this.#applier.isIdle) return;
    this.#logReadWanted = undefined;
    this.#logReading = true;
    this.#log.read({ ...range, maxBytes: this.#limits.logReadBytesMax }, (error, entries) =>
      this.#finished(error, () => {
        this.#logReading = false;
        this.#core.logRead(entries);
      }),
    );
  }

  #flush(): void {
    this.#applier.flush((error, note) =>
      this.#finished(error, () => {
        note();
        this.#core.applied(this.#applier.flushedIndex);
      }),
    );
  }

  #compact(): void {
    const { flushedIndex } = this.#applier;
    const flushedEntries = flushedIndex - this.#core.status().baseIndex;
    if (this.#compacting || flushedEntries <= this.#limits.compactAfterEntries) return;
    this.#compacting = true;
    const base = this.#core.snapshotMeta(flushedIndex - this.#limits.keepTrailingEntries);
    this.#log.compact(base, (error) =>
      this.#finished(error, () => {
        this.#compacting = false;
        this.#core.compacted(base);
      }),
    );
  }

  /** True once every proposal is answered: from then on nothing new begins but the last flush and the close. */
  #windDown(stopping: Stopping): boolean {
    this.#reads.refuseAll('stopped');
    this.#announce();
    if (this.#proposals.size > 0) return false;
    this.#endTicks?.();
    const waiting = this.#writesInFlight > 0 || this.#logReading || this.#compacting || this.#applier.isFlushing;
    if (waiting || stopping.phase !== 'finishing') return true;
    if (this.#applier.flushedIndex < this.#applier.appliedIndex) {
      this.#flush();
      return true;
    }
    stopping.phase = 'closing';
    this.#log.close((error) =>
      this.#finished(error, () => {
        stopping.phase = 'closed';
        for (const done of stopping.dones) done();
      }),
    );
    return true;
  }

  #fail(error: Error): void {
    this.#fatal = error;
    this.#core.storageFailed();
    this.#endTicks?.();
    this.#proposals.fail();
    this.#reads.refuseAll('faulty');
    this.#announce();
    for (const done of this.#stopping?.dones ?? []) done(error);
    this.#options.onFatal(error);
  }

  #announce(): void {
    const status = this.status();
    const announcement = [status.role, status.term, status.leader, status.ready].join();
    if (announcement === this.#announced) return;
    this.#announced = announcement;
    this.#options.onStatus?.(status);
  }
}
