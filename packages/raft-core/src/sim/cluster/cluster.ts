import type { Status } from '../../core/raft-core.ts';
import { Driver } from '../../driver/driver.ts';
import { type DriverLimits, driverLimits } from '../../driver/limits.ts';
import type { Done, TransportReceiver } from '../../ports.ts';
import type { ConfState, LogIndex, Message, NodeId, SnapshotMeta } from '../../types.ts';
import type { WireVersions } from '../../wire/version.ts';
import { SimClock } from '../sim-clock.ts';
import { SimRandom } from '../sim-random.ts';
import { Clients } from './clients.ts';
import type { SimConfig } from './config.ts';
import { CoreHost } from './core-host.ts';
import { Coverage } from './coverage.ts';
import { DeviceTimes } from './device-times.ts';
import { driverHost } from './driver-host.ts';
import type { Host } from './host.ts';
import { LocalClock } from './local-clock.ts';
import { Member, type MemberRun } from './member.ts';
import { MemoryStorage } from './memory-storage.ts';
import { factsOf } from './message-facts.ts';
import { SimNetwork } from './network.ts';
import { Operator } from './operator.ts';
import { NodeProcess } from './process.ts';
import { Promises } from './promises.ts';
import { Safety } from './safety.ts';
import { type SnapshotPeer, SnapshotPort } from './snapshot-port.ts';
import type { OpenStorage, StateImage, StateImages, StorageMaker } from './storage.ts';
import { StreamedSnapshots } from './streamed-snapshots.ts';
import type { Trace } from './trace.ts';
import { holds } from './violation.ts';

export const electionMs = 1_000;
const CLUSTER_ID = 'simulated';
const NOBODY: ConfState = {
  voters: [],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
  context: new Uint8Array(0),
};

/** A whole cluster on one clock: members, the network between them, clients, and the checkers that look at every event. */
export class Cluster {
  readonly config: SimConfig;
  readonly clock = new SimClock();
  readonly coverage = new Coverage();
  readonly safety: Safety;
  readonly network: SimNetwork;
  readonly clients: Clients;
  readonly operator = new Operator(this);
  readonly random: SimRandom;
  /** For what {@link ExtraFaults} bring about. */
  readonly extraRandom: SimRandom;
  readonly members: Member[] = [];
  readonly trace: Trace;
  /** Operations that some node has applied. */
  readonly operations = new Set<number>();
  events = 0;
  isHealed = false;
  /** The first thing that went wrong inside a node that would have caught it. */
  failure: Error | undefined;
  readonly #limits: DriverLimits;
  readonly #storage: StorageMaker;
  readonly #times = new DeviceTimes(this);
  /** Ids that left never come back, unless the schedule brings them back: a core alone has to stand that. */
  readonly #hasTombstones: boolean;

  constructor(config: SimConfig, trace: Trace, storage: StorageMaker = (node) => new MemoryStorage(node)) {
    this.config = config;
    this.trace = trace;
    this.#storage = storage;
    const { seed, sizes } = config;
    this.random = new SimRandom(seed ^ 0x5eed);
    this.extraRandom = new SimRandom(config.extra?.seed ?? 0);
    const promises = new Promises(electionMs, (id) => this.member(id)?.clock.now() ?? 0);
    this.safety = new Safety(this.coverage, promises);
    const world = { clock: this.clock, random: new SimRandom(seed ^ 0x2e7), coverage: this.coverage };
    const network = config.skew === 0 ? world : { ...world, versions: (id: NodeId) => this.#versionsOf(id) };
    this.network = new SimNetwork(network, config.network, (message, sentAtMs) => this.#deliver(message, sentAtMs));
    this.clients = new Clients(this, new SimRandom(seed ^ 0xc11e));
    const hasStrangers = config.extra?.schedule.some(({ kind }) => kind === 'strangerAnswers') === true;
    this.#hasTombstones = !hasStrangers && config.schedule.every(({ kind }) => kind !== 'removeAndReadd');
    this.#limits = {
      ...driverLimits,
      electionMs,
      leaseMs: config.leaseReads ? driverLimits.leaseMs : 0,
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
    return this.members.filter(({ run }) => run !== undefined);
  }

  /** The leader of the newest term among the running ones. */
  get leader(): Member | undefined {
    let newest: Member | undefined;
    for (const member of this.members) {
      const { status } = member.watched;
      if (member.run === undefined || status?.role !== 'leader') continue;
      if (newest?.watched.status === undefined || newest.watched.status.term < status.term) newest = member;
    }
    return newest;
  }

  member(id: NodeId): Member | undefined {
    return this.members[id - 1];
  }

  /** A new node under a new id, which knows nobody until a leader speaks to it. */
  join(): Member {
    const member = this.#create(this.members.length + 1, NOBODY);
    this.start(member);
    return member;
  }

  /** Runs a task in the node's process, and looks at the node afterwards. */
  enter(member: Member, run: MemberRun, task: () => void): void {
    if (member.run === run) run.process.run(task);
  }

  /** Starts the node on its disk, if it may; a disk that turns out damaged keeps it from it for good. */
  start(member: Member): void {
    if (member.process !== undefined || member.fate !== 'healthy') return;
    this.#upgrade(member);
    const process: NodeProcess = new NodeProcess(this.clock, {
      clock: member.clock,
      offsetMs: this.random.below(1_000_000),
      around: (task) => this.#around(member, process, task),
    });
    member.process = process;
    if (member.storage.isTorn) this.coverage.met('log cut at a torn tail');
    try {
      member.storage.open(
        {
          process,
          delayMs: (part) => this.#times.syncMs(member, part),
          enter: (task) => this.#enter(process, task),
          onWrite: (write) => this.safety.wrote(member.watched, write),
          onApply: ({ index, digest, operation }) => {
            if (operation !== undefined) this.operations.add(operation);
            this.safety.applied(member.id, index, digest);
          },
        },
        (opened) => this.#opened(member, process, opened),
      );
    } catch (error) {
      this.#notOpened(member, process, error);
    }
  }

  /** The power goes: the process ends at once, and of what was on its way to the disk some is there. */
  crash(member: Member): void {
    const { run, process, storage, id } = member;
    if (process === undefined) return;
    this.#end(member, process);
    const { isLost, facts } = storage.crash(this.random, this.config.disk);
    this.trace.note(this.clock.now(), 'crash', id, ...facts);
    if (isLost) this.coverage.met('unsynced write lost in a crash');
    if (run?.snapshots.isInstalling === true) this.coverage.met('install crashed half-way');
    if (this.config.disk.slotRot > 0 && this.random.chance(this.config.disk.slotRot)) {
      this.coverage.met('vote slot unreadable at a start');
      storage.rotSlot(this.random.chance(0.5) ? 0 : 1);
    }
  }

  /** The process ends at once, and its machine goes on: what it had written is found again, synced or not. */
  kill(member: Member): void {
    const { process, storage, id } = member;
    if (process === undefined) return;
    this.#end(member, process);
    const { facts } = storage.kill(this.extraRandom);
    this.trace.note(this.clock.now(), 'kill', id, ...facts);
    this.coverage.met('process killed');
  }

  /** Runs one event. @throws whatever rule it broke */
  step(): boolean {
    if (!this.clock.step()) return false;
    this.events += 1;
    if (this.failure !== undefined) throw this.failure;
    return true;
  }

  #end(member: Member, process: NodeProcess): void {
    member.run = undefined;
    member.process = undefined;
    process.kill();
  }

  /** Each start may be one of a newer program, until all are of the newest. */
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
    // Mostly as far apart as is allowed at all: a lease is right only up to there.
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
      holds('a start finds what was destroyed below the mark', !member.isDamaged, () => ({ id: member.id }));
      const { hardState, lastIndex } = member.storage.durable;
      this.safety.started(member.watched);
      const { flushedAtOpen } = opened.machine;
      this.trace.note(this.clock.now(), 'start', member.id, lastIndex, hardState.term, hardState.vote, flushedAtOpen);
      const run = this.#host(member, process, opened);
      member.run = run;
      process.run(() => run.host.start());
    } catch (error) {
      this.#notOpened(member, process, error);
    }
  }

  /** @throws the error, unless it is what was done to the disk */
  #notOpened(member: Member, process: NodeProcess, error: unknown): void {
    const verdict = error instanceof Error ? member.storage.verdict(error) : 'bug';
    if (verdict !== 'damaged' || !member.isDamaged) throw error;
    member.fate = 'damaged';
    member.process = undefined;
    process.kill();
    this.coverage.met('damage quarantined');
    this.trace.note(this.clock.now(), 'quarantined', member.id);
  }

  #enter(process: NodeProcess, task: () => void): void {
    try {
      process.run(task);
    } catch (error) {
      this.failure ??= error instanceof Error ? error : new Error(String(error));
    }
  }

  #around(member: Member, process: NodeProcess, task: () => void): void {
    task();
    const { run } = member;
    if (run === undefined || run.process !== process) return;
    const status = run.host.consensus();
    this.safety.observed(member.watched, status);
    const { flushed } = run.machine;
    if (flushed !== undefined) this.safety.flushed(member.watched, status, flushed);
  }

  #host(member: Member, process: NodeProcess, { log, machine, streams }: OpenStorage): MemberRun {
    const random = new SimRandom(this.random.uint32());
    const snapshots = streams === undefined ? this.#imaged(member, process) : this.#streamed(member, process, streams);
    const inbox: MemberRun['inbox'] = { receiver: undefined };
    const transport = {
      send: (messages: readonly Message[]) => this.#send(member, messages),
      receive: (receiver: TransportReceiver) => {
        inbox.receiver = receiver;
      },
    };
    const peers = { transport, snapshots, random };
    const options = {
      // Nodes forget at different times, so that what one has forgotten another may still have.
      limits: { ...this.#limits, compactAfterEntries: this.#limits.compactAfterEntries * (1 + (member.id % 3)) },
      fitness: member.fitness,
      removed: this.#hasTombstones && member.removedAt !== undefined,
      observe: (situation: Parameters<Coverage['met']>[0]) => this.coverage.met(situation),
      onFatal: (error: Error) => this.#fatal(member, process, error),
      onRemoved: (atIndex: number) => {
        member.removedAt = atIndex;
      },
      removedAt: (id: NodeId) => (this.#hasTombstones ? machine.removed.get(id) : undefined),
      promotes: (learner: NodeId, conf: ConfState) => this.operator.mayPromote(learner, conf),
      checkInvariants: true,
    };
    const host: Host =
      this.config.profile === 'core'
        ? new CoreHost({ ...peers, log, machine, clock: process }, options)
        : driverHost(new Driver({ log, stateMachine: machine, clock: process, peers }, options));
    return { process, machine, host, snapshots, startedAtMs: this.clock.now(), inbox, wasPaused: false };
  }

  #imaged(member: Member, process: NodeProcess): SnapshotPort {
    return new SnapshotPort({
      id: member.id,
      world: this.clock,
      process,
      peer: (id) => this.#snapshotPeer(id),
      pieceDelayMs: (from) => this.#pieceDelayMs(from, member.id),
      // A whole state is more than one batch of entries.
      syncMs: () => 5 * this.#times.syncMs(member) + (this.isHealed ? 0 : this.random.below(100)),
      begins: () => this.safety.installsAlone(member.id, member.run?.machine.isFlushing === true),
      install: (snapshot, done) => this.#install(member, snapshot, done),
    });
  }

  #streamed(member: Member, process: NodeProcess, streams: NonNullable<OpenStorage['streams']>): StreamedSnapshots {
    return new StreamedSnapshots({
      streams: streams({ open: (from, index) => this.#stream(from, { member, process }, index) }),
      enter: (task) => this.#enter(process, task),
      installs: (meta) => this.#installs(member, meta),
      installed: () => this.#installed(member),
    });
  }

  /** What one node streams to another, at the pace of the network between them, until one of the two ends or the network cuts it. */
  async *#stream(
    from: NodeId,
    to: { readonly member: Member; readonly process: NodeProcess },
    index: LogIndex,
  ): AsyncGenerator<Uint8Array> {
    const arrives = async (): Promise<void> => {
      const delayMs = this.#pieceDelayMs(from, to.member.id);
      await new Promise<void>((resolve) => this.clock.after(delayMs ?? 500, resolve));
      if (delayMs === undefined || !to.process.isAlive) throw new Error('the network broke the stream');
    };
    await arrives();
    const run = this.member(from)?.run;
    if (run === undefined || run.process.isPaused || !(run.snapshots instanceof StreamedSnapshots))
      throw new Error(`node ${from} does not answer`);
    for await (const chunk of run.snapshots.stream(to.member.id, index)) {
      await arrives();
      if (this.member(from)?.run !== run) throw new Error(`node ${from} has ended`);
      yield chunk;
    }
  }

  #snapshotPeer(id: NodeId): SnapshotPeer | undefined {
    const member = this.member(id);
    const run = member?.run;
    if (member === undefined || run === undefined || !(run.snapshots instanceof SnapshotPort)) return undefined;
    const { snapshots } = run;
    const isSame = (): boolean => member.run === run;
    return {
      isSame,
      open: () => {
        const source = snapshots.source;
        if (!isSame() || run.process.isPaused || source === undefined) return undefined;
        const image = this.#images(member).image();
        return { image, meta: source.describe(image.applied) };
      },
      failed: (reader) => this.enter(member, run, () => snapshots.source?.failed(reader)),
    };
  }

  #pieceDelayMs(from: NodeId, to: NodeId): number | undefined {
    const breaks = !this.isHealed && this.random.chance(0.05 + this.config.network.drop / 2);
    const { untilMs = 0, pieceMs = 0 } = this.member(to)?.streaming ?? {};
    if (this.clock.now() < untilMs) return 1 + this.random.below(pieceMs);
    if (breaks || this.network.isCut(from, to) || this.network.isCut(to, from)) {
      this.coverage.met('snapshot stream broken');
      return undefined;
    }
    const { delayMsMax, heavyTail } = this.config.network;
    return 1 + this.random.below(this.isHealed ? 5 : 3 * delayMsMax + (heavyTail > 0 ? 800 : 20));
  }

  #install(member: Member, snapshot: { readonly meta: SnapshotMeta; readonly image: StateImage }, done: Done): void {
    this.#installs(member, snapshot.meta);
    this.#images(member).install(snapshot, (error) => {
      if (error === undefined) this.#installed(member);
      done(error);
    });
  }

  #installs(member: Member, meta: SnapshotMeta): void {
    this.safety.installsAlone(member.id, member.run?.machine.isFlushing === true);
    this.trace.note(this.clock.now(), 'install', member.id, meta.index, meta.term);
    this.safety.installs(member.watched, meta);
  }

  #installed(member: Member): void {
    this.safety.installed(member.watched);
    const machine = member.run?.machine;
    if (machine !== undefined) this.safety.applied(member.id, machine.applied, machine.digest);
  }

  #images({ storage, id }: Member): StateImages {
    if (storage.images === undefined) throw new Error(`the storage of node ${id} has no images`);
    return storage.images;
  }

  #send(member: Member, messages: readonly Message[]): void {
    for (const message of messages) {
      this.safety.sent(member.watched, message);
      this.network.send(message);
      const { run } = member;
      const lost = this.network.isCut(message.from, message.to) || this.member(message.to)?.run === undefined;
      if (lost && run !== undefined && this.random.chance(0.05)) {
        run.process.after(1, () => run.inbox.receiver?.unreachable(message.to));
      }
    }
  }

  #deliver(message: Message, sentAtMs: number): void {
    const member = this.member(message.to);
    const run = member?.run;
    if (member === undefined || run === undefined) return;
    if (sentAtMs < run.startedAtMs) this.coverage.met('message of an earlier run delivered');
    this.trace.note(this.clock.now(), message.type, message.to, message.from, message.term, ...factsOf(message));
    const isStale = this.safety.isOfEarlierSession(member.watched, message);
    this.enter(member, run, () => {
      const before = isStale ? run.host.matchOf(message.from) : undefined;
      const led = this.#ledWithoutPeer(run, message);
      run.inbox.receiver?.message(message);
      if (isStale) this.safety.ignored(message, before, run.host.matchOf(message.from));
      if (led !== undefined && member.run === run) this.safety.answeredByStranger(led, run.host.consensus(), message.from);
      // Who is known to have left is not heard: it stepped down when that was committed. A driver hears at its next turn only.
      const isHeard = !(this.#hasTombstones && run.machine.removed.has(message.from));
      if (member.run !== run || !isHeard || this.config.profile !== 'core') return;
      this.safety.promises.received(member.id, message, run.host.consensus());
    });
  }

  /** What the node is, if it leads and the message answers, in a later term, in the name of a node that is no peer of its. */
  #ledWithoutPeer({ host }: MemberRun, { type, from, term }: Message): Status | undefined {
    const isAnswer = type === 'AppendResp' || type === 'HeartbeatResp' || type === 'SnapResult';
    if (!isAnswer || this.config.profile !== 'core') return undefined;
    const status = host.consensus();
    return status.role === 'leader' && term > status.term && host.matchOf(from) === undefined ? status : undefined;
  }

  #fatal(member: Member, process: NodeProcess, error: Error): void {
    this.trace.note(this.clock.now(), 'fatal', member.id, error.message);
    if (member.storage.verdict(error) === 'failed') {
      this.coverage.met('sync failed');
      if (member.run?.process !== process) return;
      this.crash(member);
      this.clock.after(200 + this.random.below(1500), () => this.start(member));
    } else this.failure ??= error;
  }
}
