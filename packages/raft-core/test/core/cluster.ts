import { expect } from 'chai';
import { soleVoter } from '../../src/confchange/conf-state.ts';
import type { CoverageEvent } from '../../src/core/contract/coverage-events.ts';
import { type RaftLimits, raftLimits } from '../../src/core/contract/limits.ts';
import type { CoreEvent, LogReadRequest, Ready } from '../../src/core/contract/raft-core.ts';
import { Raft, type RaftOptions } from '../../src/core/raft.ts';
import type { LogStart } from '../../src/ports.ts';
import type { ConfState, Entry, HardState, LogIndex, Message, NodeId, SnapshotMeta } from '../../src/types.ts';
import { decodeConfState } from '../../src/wire/conf-state.ts';

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (data: Uint8Array): string => new TextDecoder().decode(data);

export const confOf = (voters: readonly NodeId[], change: Partial<ConfState> = {}): ConfState => ({
  ...soleVoter(1),
  voters,
  ...change,
});

export interface NodeOptions extends Partial<Omit<RaftOptions, 'limits'>> {
  readonly conf?: ConfState;
  readonly limits?: Partial<RaftLimits>;
  readonly start?: Partial<LogStart>;
  /** The terms of the log's entries at the start, from entry 1 on. */
  readonly terms?: readonly number[];
}

/** A core with a disk in memory. The test decides when a write is durable and which messages arrive. */
export class TestNode {
  readonly id: NodeId;
  readonly #options: NodeOptions;
  hardState: HardState;
  base: SnapshotMeta;
  entries: Entry[];
  /** Every applied entry; survives a restart like a state machine that flushes at once. */
  applied: LogIndex;
  readonly appliedEntries = new Map<LogIndex, Entry>();
  core: Raft;
  readonly observed = new Set<CoverageEvent>();
  readonly events: CoreEvent[] = [];
  readonly reads: Ready['reads'][number][] = [];
  readonly droppedReads: number[] = [];
  /** Writes wait here while `holdsWrites`. */
  holdsWrites = false;
  readonly held: Ready[] = [];
  /** Fetch requests wait here. */
  fetches: NonNullable<Ready['fetch']>[] = [];
  #incarnation = 0;

  constructor(id: NodeId, options: NodeOptions = {}) {
    this.id = id;
    this.#options = options;
    const { conf = soleVoter(id), terms = [], start = {} } = options;
    this.base = start.base ?? { index: 0, term: 0, conf, confIndex: 0 };
    this.entries = terms.map((term, i) => {
      return { term, index: this.base.index + 1 + i, type: 'normal', data: bytes(`${term}.${i + 1}`) };
    });
    this.hardState = start.hardState ?? { term: terms.at(-1) ?? this.base.term, vote: 0, commit: this.base.index };
    this.applied = options.applied ?? this.base.index;
    this.core = this.#open();
  }

  restart(): void {
    this.held.length = 0;
    this.fetches = [];
    this.core = this.#open();
  }

  entry(index: LogIndex): Entry | undefined {
    return this.entries[index - this.base.index - 1];
  }

  /** The entries of the log on disk, as text. */
  texts(): string[] {
    return this.entries.map(({ type, data }) => (type === 'normal' ? text(data) : type));
  }

  /** Takes and carries out every batch; returns the messages that may be sent. */
  pump(): Message[] {
    const sent: Message[] = [];
    while (this.core.hasReady()) sent.push(...this.carryOut(this.core.ready()));
    return sent;
  }

  carryOut(ready: Ready): Message[] {
    const sent = [...ready.immediate];
    this.events.push(...ready.events);
    this.reads.push(...ready.reads);
    this.droppedReads.push(...ready.droppedReads);
    if (ready.fetch !== undefined) this.fetches.push(ready.fetch);
    for (const request of ready.readLog) this.#readLog(request);
    for (const entry of ready.committed) this.#apply(entry);
    if (ready.committed.length > 0) this.core.applied(this.applied);
    this.held.push(ready);
    if (!this.holdsWrites) sent.push(...this.persist());
    return sent;
  }

  /** Makes the oldest held write durable, or all of them. */
  persist(count = this.held.length): Message[] {
    const durable = this.held.splice(0, count);
    for (const { hardState, snapshot, entries } of durable) {
      if (hardState !== undefined) this.hardState = hardState;
      if (snapshot !== undefined) this.#install(snapshot);
      for (const entry of entries) {
        this.entries.length = entry.index - this.base.index - 1;
        this.entries.push(entry);
      }
    }
    const last = durable.at(-1);
    if (last !== undefined) this.core.persisted(last.seq);
    this.core.checkInvariants();
    return durable.flatMap(({ afterPersist }) => [...afterPersist]);
  }

  compact(index: LogIndex): void {
    const base = this.core.snapshotMeta(index);
    this.core.compacted(base);
    this.entries = this.entries.filter((entry) => entry.index > index);
    this.base = base;
  }

  /** Ends the fetch under way: with the state that `source` has on disk, or with a failure. */
  receive(source: TestNode | undefined): boolean {
    this.fetches.shift();
    const meta = source?.core.snapshotMeta(source.applied);
    const isNeeded = this.core.snapshotReceived(meta);
    if (isNeeded && source !== undefined) {
      for (const [index, entry] of source.appliedEntries) this.appliedEntries.set(index, entry);
    }
    return isNeeded;
  }

  #open(): Raft {
    const { limits = {}, start = {}, ...rest } = this.#options;
    this.#incarnation += 1;
    const terms: { term: number; firstIndex: number }[] = [];
    for (const { term, index } of this.entries) if (terms.at(-1)?.term !== term) terms.push({ term, firstIndex: index });
    const opened: LogStart = {
      nodeId: this.id,
      clusterId: 'c',
      incarnation: this.#incarnation,
      hardState: this.hardState,
      base: this.base,
      lastIndex: this.base.index + this.entries.length,
      bytes: 0,
      terms,
      confEntries: this.entries.filter(({ type }) => type === 'conf'),
      ...(start.clusterId === undefined ? {} : { clusterId: start.clusterId }),
    };
    const observe = (event: CoverageEvent) => this.observed.add(event);
    return new Raft(opened, { seed: this.id, ...rest, applied: this.applied, limits: { ...raftLimits, ...limits }, observe });
  }

  #readLog(request: LogReadRequest): void {
    const { lo, hi } = request;
    const found: Entry[] = [];
    for (let index = lo; index <= hi; index++) {
      const entry = this.entry(index);
      expect(entry, `node ${this.id} is asked for stored entry ${index}`).not.to.equal(undefined);
      if (entry !== undefined) found.push(entry);
    }
    this.core.logRead(request, found);
  }

  #apply(entry: Entry): void {
    expect(entry.index, 'applied in order').to.equal(this.applied + 1);
    expect(this.entry(entry.index), 'stable before applied').to.deep.equal(entry);
    this.applied = entry.index;
    this.appliedEntries.set(entry.index, entry);
  }

  #install(meta: SnapshotMeta): void {
    this.base = meta;
    this.entries = [];
    this.applied = meta.index;
  }
}

/** Cores connected by a network that a test can cut, delay and replay at will. Time passes only by `pass`. */
export class Cluster {
  readonly nodes = new Map<NodeId, TestNode>();
  nowMs = 0;
  /** Messages under way, oldest first. */
  wire: Message[] = [];
  /** Every message ever sent. */
  readonly sent: Message[] = [];
  /** Returns whether a message is delivered; all are by default. */
  passes: (message: Message) => boolean = () => true;

  constructor(ids: readonly NodeId[], options: NodeOptions = {}, own: Readonly<Record<NodeId, NodeOptions>> = {}) {
    for (const id of ids) this.add(id, { conf: confOf(ids), ...options, ...own[id] });
    // Lets the time pass in which a node that has just started gives no vote.
    for (const { core } of this.nodes.values()) core.tick(0);
    this.nowMs = 1_000;
  }

  add(id: NodeId, options: NodeOptions): TestNode {
    const node = new TestNode(id, options);
    this.nodes.set(id, node);
    return node;
  }

  node(id: NodeId): TestNode {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`no node ${id}`);
    return node;
  }

  /** Carries out effects and delivers messages until nothing is left. */
  settle(): void {
    for (let rounds = 0; ; rounds++) {
      expect(rounds, 'settles').to.be.below(2_000);
      this.pump();
      if (this.wire.length === 0) return;
      const batch = this.wire;
      this.wire = [];
      for (const message of batch) this.deliver(message);
    }
  }

  pump(): void {
    for (const node of this.nodes.values()) this.post(node.pump());
  }

  post(messages: readonly Message[]): void {
    this.sent.push(...messages);
    this.wire.push(...messages.filter((message) => this.passes(message)));
  }

  deliver(message: Message): void {
    const node = this.nodes.get(message.to);
    node?.core.step(message, this.nowMs);
    node?.core.checkInvariants();
  }

  /** Lets time pass for all nodes, or only for some, in steps of a tick. */
  pass(ms: number, ids: readonly NodeId[] = [...this.nodes.keys()]): void {
    for (let left = ms; left > 0; left -= 50) {
      this.nowMs += Math.min(50, left);
      for (const id of ids) this.node(id).core.tick(this.nowMs);
      this.settle();
    }
  }

  /** Lets time pass until the condition holds. */
  passUntil(condition: () => boolean, ids: readonly NodeId[] = [...this.nodes.keys()]): void {
    for (let ticks = 0; !condition(); ticks++) {
      expect(ticks, 'the awaited condition holds in time').to.be.below(400);
      this.pass(50, ids);
    }
  }

  /** Gets that node elected by letting time pass for it alone. The others have just received its first heartbeat. */
  elect(id: NodeId): TestNode {
    const node = this.node(id);
    this.passUntil(() => node.core.status().role === 'leader', [id]);
    this.pass(50, [id]);
    return node;
  }

  leaders(): NodeId[] {
    return [...this.nodes.values()].filter(({ core }) => core.status().role === 'leader').map(({ id }) => id);
  }

  /** Returns the messages of a type sent since `from`, a position in `sent`. */
  sentOf<T extends Message['type']>(type: T, from = 0): Extract<Message, { type: T }>[] {
    return this.sent.slice(from).filter((message): message is Extract<Message, { type: T }> => message.type === type);
  }
}

/** Returns the configurations in the order in which they were in force on a node. */
export const confsIn = (node: TestNode): ConfState[] =>
  node.entries.filter(({ type }) => type === 'conf').map(({ data }) => decodeConfState(data));
