import {
  type Clock,
  type ConfState,
  Driver,
  type DriverLimits,
  driverLimits,
  type Message,
  type NodeId,
  type SnapshotMeta,
  type Status,
  type TransportReceiver,
  type WireVersions,
} from '@transitd/raft-core';
import { SimClock } from '../../fakes/sim-clock.ts';
import { SimRandom } from '../../fakes/sim-random.ts';
import { Coverage } from '../checks/coverage.ts';
import { factsOf } from '../checks/message-facts.ts';
import { Promises } from '../checks/promises.ts';
import { Safety } from '../checks/safety.ts';
import type { Trace } from '../checks/trace.ts';
import { holds } from '../checks/violation.ts';
import type { SimConfig } from '../config/config.ts';
import { SimNetwork } from '../network/network.ts';
import { CoreHost } from '../node/core-host.ts';
import { driverHost } from '../node/driver-host.ts';
import type { Host } from '../node/host.ts';
import { LeaseGuard } from '../node/lease-guard.ts';
import { type Incarnation, Member } from '../node/member.ts';
import { ReadingThreads } from '../node/reading-threads.ts';
import { LocalClock } from '../process/local-clock.ts';
import { NodeProcess } from '../process/process.ts';
import { MemoryStorage } from '../storage/memory-storage.ts';
import type { OpenStorage, StorageMaker } from '../storage/storage.ts';
import { Clients } from './clients.ts';
import { DeviceTimes } from './device-times.ts';
import { Operator } from './operator.ts';
import { SnapshotTransfers } from './snapshot-transfers.ts';
import { ProcessEnded, Stalls } from './stalls.ts';
import type { World } from './world.ts';

export const electionMs = 1_000;
/** Heartbeats and leases of every run without {@link Timing}, so that a recorded run stays the same. */
const recorded = { heartbeatMs: 150, leaseMs: 800, tickMs: 50 } as const;
const CLUSTER_ID = 'simulated';
const NOBODY: ConfState = {
  voters: [],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
  context: new Uint8Array(0),
};

/** A whole cluster on one clock: members, the network between them, clients, and the checkers that check every event. */
export class Cluster implements World {
  readonly config: SimConfig;
  readonly clock = new SimClock();
  readonly coverage = new Coverage();
  readonly safety: Safety;
  readonly network: SimNetwork;
  readonly clients: Clients;
  readonly operator = new Operator(this);
  readonly random: SimRandom;
  /** Random numbers for the choices of {@link ExtraFaults}. */
  readonly extraRandom: SimRandom;
  readonly members: Member[] = [];
  readonly trace: Trace;
  /** Operations that some node has applied. */
  readonly operations = new Set<number>();
  events = 0;
  isHealed = false;
  /** Until this time no scheduled action is carried out, because a scenario of many steps is under way. */
  undisturbedUntilMs = 0;
  /** The first exception of a check. It is kept here because the node's own code would catch it. */
  failure: Error | undefined;
  readonly #limits: DriverLimits;
  readonly #storage: StorageMaker;
  readonly #times = new DeviceTimes(this);
  readonly #transfers = new SnapshotTransfers(this, this.#times);
  readonly #stalls = new Stalls(this);
  /** Ids of removed nodes never return, unless the schedule adds such a node again: a core without tombstones must tolerate that. */
  readonly #hasTombstones: boolean;

  constructor(config: SimConfig, trace: Trace, storage: StorageMaker = (node) => new MemoryStorage(node)) {
    this.config = config;
    this.trace = trace;
    this.#storage = storage;
    const { seed, sizes } = config;
    this.random = new SimRandom(seed ^ 0x5eed);
    this.extraRandom = new SimRandom(config.extra?.seed ?? 0);
    const promises = new Promises({
      electionMs,
      localMs: (id) => this.member(id)?.clock.now() ?? 0,
      leaseMs: (id) => this.#leaseMs(id),
    });
    this.safety = new Safety(this.coverage, promises);
    const hasStreams = config.separate?.streams !== undefined;
    const world = { clock: this.clock, random: new SimRandom(seed ^ 0x2e7), coverage: this.coverage, hasStreams };
    const network = config.skew === 0 ? world : { ...world, versions: (id: NodeId) => this.#versionsOf(id) };
    this.network = new SimNetwork(network, config.network, (message, sentAtMs) => this.#deliver(message, sentAtMs));
    this.clients = new Clients(this, new SimRandom(seed ^ 0xc11e));
    const hasStrangers = config.extra?.schedule.some(({ kind }) => kind === 'strangerAnswers') === true;
    this.#hasTombstones = !hasStrangers && config.schedule.every(({ kind }) => kind !== 'removeAndReadd');
    const { heartbeatMs } = config.extra?.timing ?? recorded;
    const timing = { heartbeatMs, tickMs: Math.min(recorded.tickMs, heartbeatMs / 2) };
    this.#limits = {
      ...driverLimits,
      electionMs,
      ...timing,
      uncommittedBytesMax: sizes.uncommittedBytes,
      committedBytesMax: sizes.committedBytes,
      memoryBytesMax: sizes.memoryBytes ?? driverLimits.memoryBytesMax,
      messageBytesMax: sizes.messageBytes,
      inflightMessagesMax: sizes.windowCount,
      inflightBytesMax: sizes.windowBytes,
      logReadBytesMax: sizes.messageBytes,
      compactAfterEntries: sizes.compactAfterEntries,
      keepTrailingEntries: sizes.keepTrailingEntries,
      keepForPeersEntries: 2 * sizes.keepTrailingEntries,
    };
    const voters = Array.from({ length: config.nodes }, (_, i) => i + 1);
    for (const id of voters) this.start(this.#create(id, { ...NOBODY, voters }));
  }

  get running(): readonly Member[] {
    return this.members.filter(({ incarnation }) => incarnation !== undefined);
  }

  get leader(): Member | undefined {
    let newest: Member | undefined;
    for (const member of this.members) {
      const { status } = member.observed;
      if (member.incarnation === undefined || status?.role !== 'leader') continue;
      if (newest?.observed.status === undefined || newest.observed.status.term < status.term) newest = member;
    }
    return newest;
  }

  member(id: NodeId): Member | undefined {
    return this.members[id - 1];
  }

  join(): Member {
    const member = this.#create(this.members.length + 1, NOBODY);
    this.start(member);
    return member;
  }

  enter(member: Member, incarnation: Incarnation, task: () => void): void {
    if (member.incarnation === incarnation) incarnation.process.run(task);
  }

  /** Starts the node on its disk, unless it is damaged or wiped; a disk found damaged never starts again. */
  start(member: Member): void {
    if (member.process !== undefined || member.fate !== 'healthy') return;
    this.#upgrade(member);
    const process: NodeProcess = new NodeProcess(this.clock, {
      clock: member.clock,
      offsetMs: this.random.below(1_000_000),
      around: (task) => this.#around(member, process, task),
    });
    member.process = process;
    if (member.storage.isTorn) this.coverage.met('torn end of a log cut off');
    try {
      member.storage.open(
        {
          process,
          delayMs: (part) => this.#times.syncMs(member, part),
          enter: (task) => this.report(process, task),
          onWrite: (write) => this.safety.wrote(member.observed, write),
          onApply: ({ index, digest, operation }) => {
            if (operation !== undefined) this.operations.add(operation);
            this.safety.applied(member.id, index, digest);
            this.#stalls.applied(member, process);
          },
        },
        (opened) => this.#opened(member, process, opened),
      );
    } catch (error) {
      this.#notOpened(member, process, error);
    }
  }

  /** Simulates a power failure: the process ends at once, and only part of the data on its way to the disk is stored. */
  crash(member: Member): void {
    const { incarnation, process, storage, id } = member;
    if (process === undefined) return;
    this.#end(member, process);
    const { isLost, facts } = storage.crash(this.random, this.config.disk);
    this.trace.note(this.clock.now(), 'crash', id, ...facts);
    if (isLost) this.coverage.met('unsynced write lost in a crash');
    if (incarnation?.snapshots.isInstalling === true) this.coverage.met('install crashed half-way');
    if (this.config.disk.slotRot > 0 && this.random.chance(this.config.disk.slotRot)) {
      this.coverage.met('a start found an unreadable vote slot');
      storage.rotSlot(this.random.chance(0.5) ? 0 : 1);
    }
  }

  /** Ends the process at once while its machine keeps running: everything written is still there, synced or not. */
  kill(member: Member): void {
    const { process, storage, id } = member;
    if (process === undefined) return;
    this.#end(member, process);
    const { facts } = storage.kill(this.extraRandom);
    this.trace.note(this.clock.now(), 'kill', id, ...facts);
    this.coverage.met('process killed');
  }

  report(process: NodeProcess, task: () => void): void {
    try {
      process.run(task);
    } catch (error) {
      this.failure ??= error instanceof Error ? error : new Error(String(error));
    }
  }

  /** Runs one event. @throws the violation of the rule that it broke */
  step(): boolean {
    if (!this.clock.step()) return false;
    this.events += 1;
    if (this.failure !== undefined) throw this.failure;
    return true;
  }

  /** Reports to a node that a peer closed its connections and refuses new ones, unless the node has ended. */
  refused(peer: Member, to: Member): void {
    const { incarnation } = to;
    if (incarnation === undefined) return;
    this.trace.note(this.clock.now(), 'refused', to.id, peer.id);
    this.enter(to, incarnation, () => {
      this.safety.promises.refused(to.id, peer.id);
      incarnation.inbox.receiver?.refused(peer.id);
    });
  }

  /** Returns the length of the leases of that node. */
  #leaseMs(id: NodeId): number {
    const { leaseReads, extra } = this.config;
    const leasesMs = extra?.timing?.leasesMs ?? [recorded.leaseMs];
    return leaseReads ? (leasesMs[id % leasesMs.length] ?? 0) : 0;
  }

  #end(member: Member, process: NodeProcess): void {
    member.incarnation = undefined;
    member.process = undefined;
    process.kill();
  }

  /** Each start may upgrade the node to a newer program, until all nodes run the newest. */
  #upgrade(member: Member): void {
    const { skew } = this.config;
    if (skew === 0) return;
    const newest = 1 + skew;
    const isUpgraded = this.random.chance(this.isHealed ? 1 : 0.3);
    if (member.version < newest && isUpgraded) member.version = this.isHealed ? newest : member.version + 1;
  }

  #versionsOf(id: NodeId): WireVersions {
    const newest = this.member(id)?.version ?? 1;
    return { oldest: Math.max(1, newest - 1), newest };
  }

  #create(id: NodeId, conf: ConfState): Member {
    const base: SnapshotMeta = { index: 0, term: 0, conf, confIndex: 0 };
    // Most rates are at the allowed limits, up to which a lease is correct.
    const skewed = this.random.pick([0.9, 0.9, 1.1, 1.1, 0.9 + this.random.below(201) / 1000]);
    const clockRate = this.config.clockSkew ? skewed : 1;
    const storage = this.#storage({ nodeId: id, clusterId: CLUSTER_ID, base });
    const clock = new LocalClock(this.clock, clockRate);
    const member = new Member({ id, storage, clock, fitness: 'fit' });
    this.members.push(member);
    return member;
  }

  #opened(member: Member, process: NodeProcess, opened: OpenStorage | Error): void {
    if (member.process !== process) return;
    try {
      if (opened instanceof Error) throw opened;
      holds('a start finds damage below the high-water mark', !member.isDamaged, () => ({ id: member.id }));
      const { hardState, lastIndex } = member.storage.durable;
      this.safety.started(member.observed);
      const { flushedAtOpen } = opened.machine;
      this.trace.note(this.clock.now(), 'start', member.id, lastIndex, hardState.term, hardState.vote, flushedAtOpen);
      const incarnation = this.#host(member, process, opened);
      member.incarnation = incarnation;
      process.run(() => incarnation.host.start());
    } catch (error) {
      this.#notOpened(member, process, error);
    }
  }

  /** @throws the error, unless it reports the damage that was done to the disk */
  #notOpened(member: Member, process: NodeProcess, error: unknown): void {
    const verdict = error instanceof Error ? member.storage.verdict(error) : 'bug';
    if (verdict !== 'damaged' || !member.isDamaged) throw error;
    member.fate = 'damaged';
    member.process = undefined;
    process.kill();
    this.coverage.met('damage quarantined');
    this.trace.note(this.clock.now(), 'quarantined', member.id);
  }

  #around(member: Member, process: NodeProcess, task: () => void): void {
    try {
      task();
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error;
    }
    const { incarnation } = member;
    if (incarnation === undefined || incarnation.process !== process) return;
    const status = incarnation.host.consensus();
    this.safety.observed(member.observed, status);
    const { flushed } = incarnation.machine;
    if (flushed !== undefined) this.safety.flushed(member.observed, status, flushed);
  }

  #host(member: Member, process: NodeProcess, { log, machine, streams }: OpenStorage): Incarnation {
    const random = new SimRandom(this.random.uint32());
    const snapshots = this.#transfers.of(member, process, streams);
    const inbox: Incarnation['inbox'] = { receiver: undefined };
    const { id } = member;
    const leaseGuard = new LeaseGuard(process, this.#leaseMs(id));
    const threads = new ReadingThreads({ id, leaseGuard, applied: () => machine.published, coverage: this.coverage });
    const clock: Clock = {
      now: () => {
        const nowMs = process.now();
        this.#stalls.called(member, process);
        return nowMs;
      },
      afterTurn: (task) => process.afterTurn(task),
      every: (intervalMs, task) => process.every(intervalMs, task),
    };
    const transport = {
      send: (messages: readonly Message[]) => {
        this.#stalls.called(member, process);
        threads.sends(messages);
        this.#send(member, messages);
      },
      receive: (receiver: TransportReceiver) => {
        inbox.receiver = receiver;
      },
    };
    const peers = { transport, snapshots, random };
    const options = {
      // Nodes compact at different times, so that one may still have what another has deleted.
      limits: {
        ...this.#limits,
        leaseMs: this.#leaseMs(member.id),
        compactAfterEntries: this.#limits.compactAfterEntries * (1 + (member.id % 3)),
      },
      fitness: member.fitness,
      removed: this.#hasTombstones && member.removedAt !== undefined,
      observe: (event: Parameters<Coverage['met']>[0]) => this.coverage.met(event),
      onFatal: (error: Error) => this.#fatal(member, process, error),
      onRemoved: (atIndex: number) => {
        member.removedAt = atIndex;
      },
      removedAt: (id: NodeId) => (this.#hasTombstones ? machine.removed.get(id) : undefined),
      promotes: (learner: NodeId, conf: ConfState) => this.operator.mayPromote(learner, conf),
      onLease: (endMs: number | undefined) => threads.lease(endMs, this.clients.answeredUpTo),
      checkInvariants: true,
    };
    const host: Host =
      this.config.profile === 'core'
        ? new CoreHost({ ...peers, log, machine, clock }, options)
        : driverHost(new Driver({ log, stateMachine: machine, clock, peers }, options));
    return { process, machine, host, snapshots, startedAtMs: this.clock.now(), inbox, threads, leaseGuard };
  }

  #send(member: Member, messages: readonly Message[]): void {
    for (const message of messages) {
      this.safety.sent(member.observed, message);
      this.network.send(message);
      const { incarnation } = member;
      const lost = this.network.isCut(message.from, message.to) || this.member(message.to)?.incarnation === undefined;
      if (lost && incarnation !== undefined && this.random.chance(0.05)) {
        incarnation.process.after(1, () => incarnation.inbox.receiver?.unreachable(message.to));
      }
    }
  }

  #deliver(message: Message, sentAtMs: number): void {
    const member = this.member(message.to);
    const incarnation = member?.incarnation;
    if (member === undefined || incarnation === undefined) return;
    if (sentAtMs < incarnation.startedAtMs) this.coverage.met('message to an earlier incarnation delivered');
    this.trace.note(this.clock.now(), message.type, message.to, message.from, message.term, ...factsOf(message));
    this.safety.delivered(message);
    const isStale = this.safety.isOfEarlierSession(member.observed, message);
    this.enter(member, incarnation, () => {
      const before = isStale ? incarnation.host.matchOf(message.from) : undefined;
      const led = this.#ledWithoutSender(incarnation, message);
      const heardMs = member.clock.now();
      incarnation.inbox.receiver?.message(message);
      if (isStale) this.safety.ignored(message, before, incarnation.host.matchOf(message.from));
      if (led !== undefined && member.incarnation === incarnation)
        this.safety.answeredByNonMember(led, incarnation.host.consensus(), message.from);
      // Messages of a node that is known to be removed are ignored: it stepped down when its removal was committed. A driver processes
      // input only at its next turn.
      const isHeard = !(this.#hasTombstones && incarnation.machine.removed.has(message.from));
      if (member.incarnation !== incarnation || !isHeard || this.config.profile !== 'core') return;
      this.safety.promises.received(member.id, message, { status: incarnation.host.consensus(), heardMs });
    });
  }

  /** Returns the status of a node with a leader, perhaps itself, that is about to receive an answer of a later term from outside. */
  #ledWithoutSender({ host }: Incarnation, message: Message): Status | undefined {
    const { type, from, term } = message;
    const isRefusal = (type === 'PreVoteResp' || type === 'VoteResp') && message.reject;
    const isAnswer = isRefusal || type === 'AppendResp' || type === 'HeartbeatResp' || type === 'SnapResult';
    if (!isAnswer || this.config.profile !== 'core') return undefined;
    const status = host.consensus();
    const isOutside = host.matchOf(from) === undefined && this.safety.isLedWithout(status, from);
    return term > status.term && isOutside ? status : undefined;
  }

  #fatal(member: Member, process: NodeProcess, error: Error): void {
    if (error instanceof ProcessEnded) return;
    this.trace.note(this.clock.now(), 'fatal', member.id, error.message);
    if (member.storage.verdict(error) === 'failed') {
      this.coverage.met('sync failed');
      if (member.incarnation?.process !== process) return;
      if (member.outlivesDiskErrors) {
        this.coverage.met('sync failed, pages reported as clean');
        this.kill(member);
        this.clock.after(50, () => this.start(member));
        return;
      }
      this.crash(member);
      this.clock.after(200 + this.random.below(1500), () => this.start(member));
    } else this.failure ??= error;
  }
}
