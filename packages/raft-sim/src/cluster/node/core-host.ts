import {
  type Clock,
  type ConfChange,
  type ConfirmDone,
  type ConfRefusal,
  type Done,
  type DriverLimits,
  type Entry,
  type Fitness,
  type LogIndex,
  type LogStore,
  type Message,
  type NodeId,
  type Observe,
  type PeerPorts,
  type ProposalDone,
  type ProposeResult,
  Raft,
  type RaftCore,
  type ReadDone,
  type Ready,
  type RefusalReason,
  type Status,
  type Term,
} from '@transitd/raft-core';
import type { MachineResult } from '../storage/command.ts';
import type { SimMachine } from '../storage/storage.ts';
import type { ConfDone, Host } from './host.ts';

export interface CoreHostPorts extends PeerPorts {
  readonly log: LogStore;
  readonly machine: SimMachine;
  readonly clock: Clock;
}

export interface CoreHostOptions {
  readonly limits: DriverLimits;
  readonly fitness: Fitness;
  readonly removed: boolean;
  readonly observe: Observe;
  onFatal(error: Error): void;
  onRemoved(atIndex: LogIndex): void;
  removedAt(id: NodeId): LogIndex | undefined;
}

interface Batch {
  readonly seq: number;
  readonly messages: readonly Message[];
  durable: boolean;
}

/**
 * Runs a core without a driver: every effect is carried out in the event that caused it, by the contract of `Ready` and without the
 * driver's queues, turns and limits. This is much faster than a driver, and reveals faults of the core that a driver might hide.
 */
export class CoreHost implements Host {
  readonly #ports: CoreHostPorts;
  readonly #options: CoreHostOptions;
  readonly #core: RaftCore;
  readonly #proposals = new Map<LogIndex, { readonly term: Term; readonly done: ProposalDone<MachineResult> }>();
  readonly #reads = new Map<number, ReadDone>();
  #confirmed: { readonly index: LogIndex; readonly done: ReadDone }[] = [];
  #ctx = 0;
  /** Batches that are not durable yet, or wait for an earlier one. */
  readonly #batches: Batch[] = [];
  readonly #writesSinceMs: number[] = [];
  #underWay = 0;
  #installing: Ready | undefined;
  #flushing = false;
  #compacting = false;
  #giveUpFetch: (() => void) | undefined;
  #pumping = false;
  #failed = false;

  constructor(ports: CoreHostPorts, options: CoreHostOptions) {
    this.#ports = ports;
    this.#options = options;
    const { limits, fitness, removed, observe } = options;
    const seed = ports.random.uint32();
    this.#core = new Raft(ports.log.start, { applied: ports.machine.flushedAtOpen, limits, seed, fitness, removed, observe });
  }

  start(): void {
    const { clock, transport, snapshots } = this.#ports;
    transport.receive({
      message: (message) => this.#do(() => this.#receive(message)),
      unreachable: (peer) => this.#do(() => this.#core.unreachable(peer)),
      refused: (peer) => this.#do(() => this.#core.refused(peer)),
    });
    snapshots.serve({
      describe: (index) => this.#core.snapshotMeta(index),
      failed: (peer) => this.#do(() => this.#core.snapshotResult(peer, false)),
    });
    clock.every(this.#options.limits.tickMs, () => this.#do(() => this.#tick()));
    this.#do(() => this.#tick());
  }

  propose(data: Uint8Array, done: ProposalDone<MachineResult>): void {
    this.#do(() => this.#await(this.#core.propose(data), done));
  }

  proposeConf(change: ConfChange, done: ConfDone): void {
    this.#do(() => this.#await(this.#core.proposeConf(change), done));
  }

  readIndex(done: ReadDone): void {
    this.#do(() => {
      this.#ctx += 1;
      const reason = this.#core.readIndex(this.#ctx);
      if (reason === undefined) this.#reads.set(this.#ctx, done);
      else this.#ports.clock.afterTurn(() => done({ kind: 'refused', reason }));
    });
  }

  leaseRead(): boolean {
    return this.leaseEndMs() !== undefined;
  }

  leaseEndMs(): number | undefined {
    const lease = this.#core.lease(this.#ports.clock.now());
    return lease !== undefined && this.#ports.machine.applied >= lease.index ? lease.endMs : undefined;
  }

  transfer(to: NodeId | undefined): void {
    this.#do(() => void this.#core.transferLeadership(to));
  }

  confirm(_to: NodeId, _index: LogIndex, done: ConfirmDone): void {
    this.#ports.clock.afterTurn(() => done({ kind: 'refused', reason: 'unanswered' }));
  }

  setFitness(fitness: Fitness): void {
    this.#do(() => this.#core.setFitness(fitness));
  }

  consensus(): Status {
    return this.#core.status();
  }

  matchOf(id: NodeId): LogIndex | undefined {
    return this.#core.peers().find((peer) => peer.id === id)?.match;
  }

  /**
   * Ignores the message of a node that the state records as removed, and notifies that node of its removal (thesis §4.2.3: it may not
   * know).
   */
  #receive(message: Message): void {
    const { clock, transport } = this.#ports;
    const atIndex = this.#options.removedAt(message.from);
    const { to: from, from: to, clusterId } = message;
    if (atIndex === undefined || message.type === 'Removed') this.#core.step(message, clock.now());
    else transport.send([{ type: 'Removed', from, to, term: 0, clusterId, session: 0, atIndex }]);
  }

  #await<Refusal extends ConfRefusal>(
    result: ProposeResult<Refusal>,
    done: ProposalDone<MachineResult, Refusal | RefusalReason>,
  ): void {
    if (result.accepted) this.#proposals.set(result.index, { term: result.term, done });
    else this.#ports.clock.afterTurn(() => done({ kind: 'refused', reason: result.reason }));
  }

  /** The stalled-disk watchdog: while a write hangs, this node neither leads nor campaigns. */
  #tick(): void {
    const nowMs = this.#ports.clock.now();
    const [oldestMs] = this.#writesSinceMs;
    this.#core.setStalled(nowMs - (oldestMs ?? nowMs));
    this.#core.applyAhead(nowMs - (oldestMs ?? nowMs) > this.#options.limits.applyAheadAfterMs);
    this.#core.tick(nowMs);
  }

  /** Runs one call of the core and carries out all effects that follow from it. */
  #do(task: () => void): void {
    if (this.#failed) return;
    task();
    if (this.#pumping) return;
    this.#pumping = true;
    while (!this.#failed && this.#installing === undefined && this.#core.hasReady()) this.#carryOut(this.#core.ready());
    if (!this.#failed) {
      this.#housekeeping();
      this.#core.checkInvariants();
    }
    this.#pumping = false;
  }

  #carryOut(ready: Ready): void {
    const { log, transport, snapshots } = this.#ports;
    for (const event of ready.events) if (event.type === 'removedFromCluster') this.#options.onRemoved(event.atIndex);
    for (const request of ready.readLog) {
      const { lo, hi } = request;
      this.#begin((done) =>
        log.read({ lo, hi, maxBytes: this.#options.limits.logReadBytesMax }, (error, entries) =>
          done(error, () => this.#core.logRead(request, entries)),
        ),
      );
    }
    if (ready.immediate.length > 0) transport.send(ready.immediate);
    if (ready.commitHint !== undefined) log.noteCommit(ready.commitHint);
    if (ready.fetch !== undefined) {
      this.#giveUpFetch?.();
      this.#giveUpFetch = snapshots.fetch(ready.fetch, (received) => {
        this.#giveUpFetch = undefined;
        this.#do(() => {
          if (!this.#core.snapshotReceived(received)) snapshots.discard();
        });
      });
    }
    if (ready.snapshot === undefined) this.#write(ready);
    else this.#installing = ready;
  }

  #write(ready: Ready): void {
    const { machine } = this.#ports;
    const { seq, hardState, entries, afterPersist, committed, reads, droppedReads } = ready;
    const batch: Batch = { seq, messages: afterPersist, durable: hardState === undefined && entries.length === 0 };
    this.#batches.push(batch);
    if (!batch.durable) {
      this.#writesSinceMs.push(this.#ports.clock.now());
      this.#begin((done) =>
        this.#ports.log.write({ ...(hardState === undefined ? {} : { hardState }), entries }, (error) =>
          done(error, () => {
            this.#writesSinceMs.shift();
            batch.durable = true;
            this.#release();
          }),
        ),
      );
    }
    this.#release();
    const results = committed.map((entry) => [entry, machine.apply(entry)] as const);
    if (results.length > 0) machine.publish();
    for (const [entry, result] of results) this.#applied(entry, result);
    for (const { ctx, index } of reads) this.#confirm(ctx, index);
    for (const ctx of droppedReads) this.#drop(ctx);
  }

  /** Reports durable batches to the core, in order. */
  #release(): void {
    for (let batch = this.#batches[0]; batch?.durable === true; batch = this.#batches[0]) {
      this.#batches.shift();
      this.#core.persisted(batch.seq);
      if (batch.messages.length > 0) this.#ports.transport.send(batch.messages);
    }
  }

  /** Starts one effect of a port. Its error stops the node. */
  #begin(effect: (done: (error: Error | undefined, note: () => void) => void) => void): void {
    this.#underWay += 1;
    effect((error, note) =>
      this.#do(() => {
        this.#underWay -= 1;
        if (error === undefined) {
          note();
          return;
        }
        this.#failed = true;
        this.#core.storageFailed();
        this.#options.onFatal(error);
      }),
    );
  }

  #housekeeping(): void {
    const { machine } = this.#ports;
    if (this.#installing !== undefined) {
      this.#install(this.#installing);
      return;
    }
    this.#answerReads();
    const { appliedIndex, stableIndex } = this.#core.status();
    if (this.#flushing || machine.applied === appliedIndex || machine.applied > stableIndex) return;
    this.#flushing = true;
    this.#begin((done) =>
      machine.flush((error, flushed) =>
        done(error, () => {
          this.#flushing = false;
          this.#core.applied(flushed);
          this.#compact(flushed);
        }),
      ),
    );
  }

  #install(ready: Ready): void {
    const meta = ready.snapshot;
    if (this.#underWay > 0 || meta === undefined) return;
    this.#begin((done: (error: Error | undefined, note: () => void) => void) => {
      const finished: Done = (error) =>
        done(error, () => {
          this.#installing = undefined;
          this.#write(ready);
        });
      this.#ports.snapshots.install(meta, finished);
    });
  }

  /** Compacts the log, but keeps the entries that a peer will need after it has installed a snapshot. */
  #compact(flushed: LogIndex): void {
    const { compactAfterEntries, keepTrailingEntries } = this.#options.limits;
    if (this.#compacting || flushed - this.#core.status().baseIndex <= compactAfterEntries) return;
    const needed = this.#core.peers().map(({ pendingSnapshot }) => pendingSnapshot ?? flushed);
    const index = Math.min(flushed - keepTrailingEntries, ...needed);
    if (index <= this.#core.status().baseIndex) return;
    const base = this.#core.snapshotMeta(index);
    this.#core.compacted(base);
    this.#compacting = true;
    this.#begin((done) =>
      this.#ports.log.compact(base, (error) =>
        done(error, () => {
          this.#compacting = false;
        }),
      ),
    );
  }

  #applied({ index, term }: Entry, result: MachineResult): void {
    const proposal = this.#proposals.get(index);
    if (proposal === undefined) return;
    this.#proposals.delete(index);
    proposal.done(proposal.term === term ? { kind: 'applied', index, result } : { kind: 'refused', reason: 'lostLeadership' });
  }

  #confirm(ctx: number, index: LogIndex): void {
    const done = this.#reads.get(ctx);
    this.#reads.delete(ctx);
    if (done !== undefined) this.#confirmed.push({ index, done });
  }

  #drop(ctx: number): void {
    const done = this.#reads.get(ctx);
    this.#reads.delete(ctx);
    done?.({ kind: 'refused', reason: 'lostLeadership' });
  }

  #answerReads(): void {
    if (this.#confirmed.length === 0) return;
    const { applied } = this.#ports.machine;
    const readable = this.#confirmed.filter(({ index }) => index <= applied);
    this.#confirmed = this.#confirmed.filter(({ index }) => index > applied);
    for (const { index, done } of readable) done({ kind: 'readable', index });
  }
}
