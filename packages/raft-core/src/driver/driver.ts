import type { PeerStatus, RaftCore, Status } from '../core/contract/raft-core.ts';
import { Raft } from '../core/raft.ts';
import { invariant } from '../invariant.ts';
import type { Clock, Done, LogStore } from '../ports.ts';
import type { ConfChange, Fitness, LogIndex, Message, NodeId, SnapshotMeta } from '../types.ts';
import { Confirmations, type ConfirmDone } from './confirmations.ts';
import { Effects } from './effects.ts';
import { type DriverLimits, driverLimits } from './limits.ts';
import type { DriverOptions, DriverPorts, PeerPorts } from './options.ts';
import type { ConfRefusalReason, DriverStatus, RefusalReason } from './outcome.ts';
import { Promotion } from './promotion.ts';
import { type ProposalDone, type ProposalObserver, Proposals } from './proposals.ts';
import { type ReadDone, Reads } from './reads.ts';
import { StallWatch } from './stall-watch.ts';
import { type TransferDone, Transfers } from './transfers.ts';
import { runsWithoutPeers } from './without-peers.ts';

type Refusable<Reason> = (outcome: { readonly kind: 'refused'; readonly reason: Reason }) => void;

/** Reported when a peer closed its connections and refuses new ones. */
interface Refused {
  readonly type: 'refused';
  readonly from: NodeId;
}

interface Stopping {
  readonly dones: Done[];
  phase: 'finishing' | 'closing' | 'closed';
}

/**
 * Owns a core and the ports, and carries out the core's effects in the order that safety rests on: the hard state is durable before the
 * entries (the log guarantees that), no vote or acknowledgement is sent before the state it vouches for is durable, and only state that
 * is stable in the log is flushed. All work is done in event-loop turns; between turns only input and the results of ports are noted.
 */
export class Driver<Result> {
  readonly #log: LogStore;
  readonly #clock: Clock;
  readonly #peers: PeerPorts | undefined;
  readonly #options: DriverOptions;
  readonly #limits: DriverLimits;
  readonly #core: RaftCore;
  readonly #effects: Effects<Result>;
  readonly #promotion: Promotion;
  readonly #stall: StallWatch;
  readonly #proposals = new Proposals<Result>();
  readonly #reads = new Reads();
  readonly #transfers = new Transfers();
  readonly #confirmations: Confirmations;

  #turnPlanned = false;
  #endTicks: (() => void) | undefined;
  /** The turn planned for an early campaign. */
  #early: { readonly atMs: number; readonly end: () => void } | undefined;
  /** Kept in the order of arrival, because a leader that is heard after a refusal is no longer suspected. */
  #inbox: (Message | Refused)[] = [];
  #unreachable: NodeId[] = [];
  /** Present once `stop` was called. */
  #stopping: Stopping | undefined;
  #fatal: Error | undefined;
  #announced = '';

  /** @throws LogDamage, InvariantViolation if the driver cannot run on the stored log */
  constructor({ log, stateMachine, clock, peers }: DriverPorts<Result>, options: DriverOptions) {
    this.#log = log;
    this.#clock = clock;
    this.#peers = peers;
    this.#options = options;
    this.#limits = { ...driverLimits, ...options.limits };
    invariant(peers !== undefined || runsWithoutPeers(log.start), 'without peers the only member is this node', {
      nodeId: log.start.nodeId,
    });
    this.#core = new Raft(log.start, {
      applied: stateMachine.flushedAtOpen,
      limits: this.#limits,
      seed: peers?.random.uint32() ?? 0,
      ...(options.fitness === undefined ? {} : { fitness: options.fitness }),
      ...(options.removed === undefined ? {} : { removed: options.removed }),
      ...(options.observe === undefined ? {} : { observe: options.observe }),
    });
    this.#confirmations = new Confirmations(log.start);
    this.#stall = new StallWatch(this.#limits, options.fitness);
    this.#effects = new Effects({
      core: this.#core,
      ports: { log, stateMachine, clock, ...(peers === undefined ? {} : { peers }) },
      limits: this.#limits,
      options,
      proposals: this.#proposals,
      reads: this.#reads,
      finished: (error, note) => this.#finished(error, note),
      input: (note) => this.#input(note),
    });
    this.#promotion = new Promotion(this.#limits);
  }

  /** Starts the driver; called once. */
  start(): void {
    this.#peers?.transport.receive({
      message: (message) => this.#input(() => this.#inbox.push(message)),
      unreachable: (peer) => this.#input(() => this.#unreachable.push(peer)),
      refused: (peer) => this.#input(() => this.#inbox.push({ type: 'refused', from: peer })),
    });
    this.#peers?.snapshots.serve({
      describe: (index) => this.#core.snapshotMeta(index),
      failed: (peer) => this.#input(() => this.#core.snapshotResult(peer, false)),
    });
    this.#endTicks = this.#clock.every(this.#limits.tickMs, () => this.#wake());
    this.#wake();
  }

  /** Proposes an entry. `data` must not change afterwards. `done` is called once, after this call has returned. */
  propose(data: Uint8Array, done: ProposalDone<Result>, observer?: ProposalObserver): void {
    const isFull = this.#proposals.size >= this.#limits.inFlightMax;
    const reason = this.#refusal() ?? (this.#stall.isStalled ? 'stalled' : isFull ? 'busy' : undefined);
    this.#take(done, reason, () => this.#proposals.queue(() => this.#core.propose(data), done, observer));
  }

  /** Proposes another configuration. `applied` means that it is committed; a joint one is then left automatically. */
  proposeConf(change: ConfChange, done: ProposalDone<Result, ConfRefusalReason>): void {
    const reason = this.#refusal() ?? (this.#peers === undefined ? 'noPeers' : undefined);
    this.#take(done, reason, () => this.#proposals.queue<ConfRefusalReason>(() => this.#core.proposeConf(change), done));
  }

  /** Requests a linearizable read of this node's state, on any role. `done` is called once, after this call has returned. */
  readIndex(done: ReadDone): void {
    this.#take(done, this.#refusal(), () => this.#reads.request(done));
  }

  /**
   * Returns whether this node's state may be read linearizably in this event-loop turn: it holds a lease, and everything committed is
   * applied.
   */
  leaseRead(): boolean {
    return this.leaseEndMs() !== undefined;
  }

  /** Returns when the lease that permits such reads ends, by the clock of this node; undefined if there is none. */
  leaseEndMs(): number | undefined {
    const lease = this.#refusal() === undefined ? this.#core.lease(this.#clock.now()) : undefined;
    return lease !== undefined && this.#effects.appliedIndex >= lease.index ? lease.endMs : undefined;
  }

  /** Transfers leadership to the given voter, or to the voter with the longest log. Proposals are refused in the meantime. */
  transfer(to: NodeId | undefined, done: TransferDone): void {
    this.#take(done, this.#refusal(), () => this.#transfers.queue(to, done));
  }

  /**
   * Asks a peer to answer once it has applied and published entry `index`. The transport must carry such messages to the peer (see
   * `isInVersion`). `done` is called once, after this call has returned.
   */
  confirm(to: NodeId, index: LogIndex, done: ConfirmDone): void {
    this.#take(done, this.#refusal(), () => this.#confirmations.queue({ to, index, done }));
  }

  setFitness(fitness: Fitness): void {
    this.#input(() => {
      this.#stall.setFitness(fitness);
      this.#core.setFitness(this.#stall.fitness);
    });
  }

  status(): DriverStatus {
    const { termStartIndex } = this.#core;
    const { appliedIndex, flushedIndex } = this.#effects;
    const { nodeId, clusterId } = this.#log.start;
    const ready = termStartIndex !== undefined && appliedIndex >= termStartIndex && this.#stopping === undefined;
    // The copy comes first: V8 needs a tenth of the time for it then, and each request reads the status.
    return { ...this.#core.position(), nodeId, clusterId, ready, appliedIndex, flushedIndex };
  }

  /** Returns the core's own view, with the configuration in force and the newest committed one. */
  consensus(): Status {
    return this.#core.status();
  }

  /** Returns the median time of a write to this node's log in the last seconds, in ms; undefined if nothing was written. */
  get writeMs(): number | undefined {
    return this.#effects.writeMs;
  }

  /** Returns for how long a write to the log, or a flush that applying waits for, has been in progress, in ms; 0 if neither. */
  get diskStalledMs(): number {
    return Math.max(this.#effects.logStalledMs, this.#effects.stateStalledMs(this.#clock.now()));
  }

  /** Returns the description of a snapshot of the state at `index`; the log must still reach back to it. */
  snapshotMeta(index: LogIndex): SnapshotMeta {
    return this.#core.snapshotMeta(index);
  }

  /** Returns what this node knows of its peers while it leads. */
  peers(): readonly PeerStatus[] {
    return this.#core.peers();
  }

  /**
   * Takes no new requests, answers the pending proposals, flushes the state machine and closes the log. Waiting reads are refused. `done`
   * receives an error if the node fails before all that is done, or had failed earlier.
   */
  stop(done: Done): void {
    const settled = this.#fatal !== undefined || this.#stopping?.phase === 'closed';
    if (settled) {
      this.#clock.afterTurn(() => done(this.#fatal));
      return;
    }
    this.#stopping ??= { dones: [], phase: 'finishing' };
    this.#stopping.dones.push(done);
    this.#reportLease();
    this.#wake();
  }

  #refusal(): RefusalReason | undefined {
    if (this.#fatal !== undefined) return 'faulty';
    return this.#stopping === undefined ? undefined : 'stopped';
  }

  #take<Reason>(done: Refusable<Reason>, reason: Reason | undefined, queue: () => void): void {
    if (reason !== undefined) {
      this.#clock.afterTurn(() => done({ kind: 'refused', reason }));
      return;
    }
    queue();
    this.#wake();
  }

  /** Plans one event-loop turn after all input that has arrived by now, so that the proposals of one turn become one write. */
  #wake(): void {
    if (this.#turnPlanned) return;
    this.#turnPlanned = true;
    this.#clock.afterTurn(() => {
      this.#turnPlanned = false;
      this.#enter(() => this.#turn());
    });
  }

  /** Plans a turn for the time of an early campaign: until the next tick, the cluster would be without a leader for nothing. */
  #planEarlyCampaign(nowMs: number): void {
    const atMs = this.#core.earlyCampaignMs;
    if (atMs === this.#early?.atMs) return;
    this.#endEarly();
    if (atMs === undefined) return;
    const end = this.#clock.every(Math.max(1, Math.ceil(atMs - nowMs)), () => {
      this.#endEarly(); // this may be a little early: then the turn plans another one
      this.#wake();
    });
    this.#early = { atMs, end };
  }

  #endEarly(): void {
    this.#early?.end();
    this.#early = undefined;
  }

  #endTimers(): void {
    this.#endTicks?.();
    this.#endEarly();
  }

  /** Runs every task of this driver: any exception stops the node, and a stopped node runs no task. */
  #enter(task: () => void): void {
    if (this.#fatal !== undefined) return;
    try {
      task();
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #input(note: () => void): void {
    this.#enter(() => {
      note();
      this.#wake();
    });
  }

  /** Called when an effect of a port has completed. */
  #finished(error: Error | undefined, note: () => void): void {
    this.#enter(() => {
      if (error !== undefined) throw error;
      note();
      this.#wake();
    });
  }

  #turn(): void {
    if (this.#stopping !== undefined && this.#windDown(this.#stopping)) return;
    this.#takeInput();
    // Deadlines are checked after the input. If the event loop stalled, the input that waits may have arrived before a deadline.
    const nowMs = this.#clock.now();
    const { logStalledMs, hasRoomAhead } = this.#effects;
    this.#core.setStalled(logStalledMs);
    this.#core.applyAhead(logStalledMs > this.#limits.applyAheadAfterMs && hasRoomAhead);
    this.#core.setRoom(this.#options.hasRoom?.() ?? true);
    this.#core.tick(nowMs);
    this.#stall.note(this.#effects.stateStalledMs(nowMs));
    this.#core.setFitness(this.#stall.fitness);
    if (this.#stall.isStalled) this.#reads.refuseWaiting('stalled');
    if (this.#peers !== undefined) this.#reportLease();
    this.#effects.proceed(this.#confirmations.ask(nowMs + this.#limits.electionMs));
    this.#reportLease();
    this.#effects.send(this.#confirmations.answers(this.#effects.appliedIndex));
    this.#observeLeadership(nowMs);
    this.#planEarlyCampaign(nowMs);
    if (this.#options.checkInvariants === true) this.#core.checkInvariants();
    this.#announce();
    if (this.#effects.hasMore) this.#wake();
  }

  #takeInput(): void {
    const [inbox, unreachable] = [this.#inbox, this.#unreachable];
    this.#inbox = [];
    this.#unreachable = [];
    const nowMs = this.#clock.now();
    for (const message of inbox) {
      if (message.type === 'refused') this.#core.refused(message.from);
      else if (this.#isFromRemoved(message)) continue;
      else if (message.type === 'Confirm' || message.type === 'ConfirmResp') this.#confirmations.receive(message);
      else this.#core.step(message, nowMs);
    }
    for (const peer of unreachable) {
      this.#core.unreachable(peer);
      this.#confirmations.unreachable(peer);
    }
    this.#confirmations.expire(nowMs);
    this.#promotion.promote(this.#core, this.#options.promotes, nowMs);
    this.#proposals.submit();
    this.#transfers.submit((to) => this.#core.transferLeadership(to));
    this.#reads.submit((ctx) => this.#core.readIndex(ctx));
  }

  /**
   * Notifies a removed node of its removal. Only a node that knows of the removal may do so; a node that just does not know the sender may
   * not.
   */
  #isFromRemoved({ from, type }: Message): boolean {
    const atIndex = this.#options.removedAt?.(from);
    if (atIndex === undefined) return false;
    const { nodeId, clusterId } = this.#log.start;
    if (type !== 'Removed')
      this.#effects.send([{ type: 'Removed', from: nodeId, to: from, term: 0, clusterId, session: 0, atIndex }]);
    return true;
  }

  #observeLeadership(nowMs: number): void {
    const status = this.#core.status();
    this.#transfers.observe(status);
    const leading = status.role === 'leader' ? status.term : undefined;
    this.#proposals.observeTerm(leading, { nowMs, patienceMs: 2 * this.#limits.electionMs });
  }

  /**
   * Reports until when other threads may answer reads. Called before the messages of a turn leave, because one of them may show a peer an
   * entry that is committed and not applied here, or end this leadership; and again when the turn has applied what it could, before a peer
   * learns of that: an applied entry may have ended the right of this node to answer.
   */
  #reportLease(): void {
    const { onLease } = this.#options;
    if (onLease !== undefined) onLease(this.leaseEndMs());
  }

  /** Returns true once every proposal is answered. After that, only the last flush and the closing of the log begin. */
  #windDown(stopping: Stopping): boolean {
    this.#reads.refuseAll('stopped');
    this.#transfers.refuseAll('stopped');
    this.#confirmations.refuseAll('stopped');
    this.#announce();
    if (this.#proposals.size > 0) return false;
    this.#endTimers();
    this.#effects.giveUpFetch();
    const { isBusy, isInstalling, flushedIndex, appliedIndex } = this.#effects;
    if (isBusy || isInstalling || stopping.phase !== 'finishing') return true;
    if (flushedIndex < appliedIndex) {
      this.#effects.flush();
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
    this.#reportLease();
    this.#core.storageFailed();
    this.#endTimers();
    this.#effects.giveUpFetch();
    this.#proposals.fail();
    this.#transfers.refuseAll('faulty');
    this.#confirmations.refuseAll('faulty');
    this.#reads.refuseAll('faulty');
    this.#announce();
    for (const done of this.#stopping?.dones ?? []) done(error);
    this.#options.onFatal(error);
  }

  #announce(): void {
    const status = this.status();
    const announcement = [status.role, status.term, status.leader, status.ready, status.transferTo].join();
    if (announcement === this.#announced) return;
    this.#announced = announcement;
    this.#options.onStatus?.(status);
  }
}
