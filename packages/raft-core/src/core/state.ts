import type { ConfAt, ConfHistory } from '../confchange/conf-history.ts';
import { isJoint, isVoter } from '../confchange/conf-state.ts';
import { invariant } from '../invariant.ts';
import type { LogView, Position } from '../log/log-view.ts';
import type { LogStart } from '../ports.ts';
import type {
  Entry,
  EntryType,
  Fitness,
  HardState,
  LogIndex,
  Message,
  MessageBody,
  NodeId,
  Role,
  SnapshotMeta,
  Term,
} from '../types.ts';
import { Ballot } from './ballot.ts';
import type { CommittedEntries } from './committed.ts';
import type { Observe } from './coverage-events.ts';
import { ElectionClock } from './election-clock.ts';
import { Leadership } from './leadership.ts';
import type { RaftLimits } from './limits.ts';
import { Outbox } from './outbox.ts';
import { PendingReads } from './pending-reads.ts';
import { ReplicatedLog } from './replicated-log.ts';

export interface StateOptions {
  /** Last entry that the state machine holds durably. */
  readonly applied: LogIndex;
  readonly limits: RaftLimits;
  /** Spreads this node's elections; nodes should differ. */
  readonly seed: number;
  readonly fitness?: Fitness;
  /** It was told in an earlier run that it is no member any more. */
  readonly removed?: boolean;
  readonly observe?: Observe;
}

/** Where a message goes. `vouches`: it speaks of stored state, and leaves only when that is durable. */
export interface Envelope {
  readonly to: NodeId;
  readonly session: number;
  readonly vouches: boolean;
  /** The own term, unless a pre-vote asks for the one after it. */
  readonly term?: Term;
}

const NOTHING = new Uint8Array(0);

/**
 * The state of one node (Raft figure 2) and its transitions: the one place where a role, a term or a vote changes, and where a
 * leader is told what becomes of the log.
 */
export class RaftState {
  readonly id: NodeId;
  readonly clusterId: string;
  readonly incarnation: number;
  readonly limits: RaftLimits;
  readonly observe: Observe;
  readonly replicated: ReplicatedLog;
  readonly log: LogView;
  readonly confs: ConfHistory;
  readonly toApply: CommittedEntries;
  readonly clock: ElectionClock;
  readonly outbox = new Outbox();
  readonly reads = new PendingReads();
  readonly #ballot: Ballot;

  #role: Role = 'follower';
  #leader: NodeId = 0;
  #leadership: Leadership | undefined;
  #fitness: Fitness;
  #nowMs = Number.NEGATIVE_INFINITY;

  /** @throws LogDamage when entries are missing that were committed or applied */
  constructor(start: LogStart, { applied, limits, seed, fitness = 'fit', removed = false, observe = () => {} }: StateOptions) {
    this.id = start.nodeId;
    this.clusterId = start.clusterId;
    this.incarnation = start.incarnation;
    this.limits = limits;
    this.observe = observe;
    const { committedBytesMax, memoryBytesMax } = limits;
    this.replicated = new ReplicatedLog(start, { applied, committedBytesMax, memoryBytesMax, removed, observe });
    this.log = this.replicated.view;
    this.confs = this.replicated.confs;
    this.toApply = this.replicated.toApply;
    this.#ballot = new Ballot(start.hardState);
    this.clock = new ElectionClock(limits, seed);
    this.#fitness = fitness;
    this.clock.isLate = fitness === 'low';
  }

  get role(): Role {
    return this.#role;
  }
  get term(): Term {
    return this.#ballot.term;
  }
  get vote(): NodeId {
    return this.#ballot.vote;
  }
  /** 0 while none is known. */
  get leader(): NodeId {
    return this.#leader;
  }
  /** Present while this node leads. */
  get leadership(): Leadership | undefined {
    return this.#leadership;
  }
  get commitIndex(): LogIndex {
    return this.replicated.commitIndex;
  }
  get nowMs(): number {
    return this.#nowMs;
  }
  get fitness(): Fitness {
    return this.#fitness;
  }
  /** The newest term on the disk. */
  get durableTerm(): Term {
    return this.#ballot.durableTerm;
  }
  /** The log's last entry, written or not. */
  get last(): Position {
    return { index: this.log.lastIndex, term: this.log.lastTerm };
  }
  get isRemoved(): boolean {
    return this.replicated.isRemoved;
  }
  get hasNews(): boolean {
    return this.#ballot.isChanged || this.replicated.hasNews;
  }

  advanceTime(nowMs: number): void {
    invariant(nowMs >= this.#nowMs, 'time never falls', { from: this.#nowMs, to: nowMs });
    this.#nowMs = nowMs;
    this.clock.begin(nowMs);
  }

  setFitness(fitness: Fitness): void {
    if (fitness === this.#fitness) return;
    this.#fitness = fitness;
    this.clock.isLate = fitness === 'low';
    this.#leadership?.fitnessChanged(fitness, this.#nowMs);
  }

  // Roles

  /** Whatever it was, it follows now, in this term or a later one; `leader` 0 if none is known. */
  follow({ term, leader }: { readonly term: Term; readonly leader: NodeId }): void {
    this.#ballot.enter(term);
    if (leader !== this.#leader) this.reads.leaderLost();
    this.#leader = leader;
    this.#role = 'follower';
    const waiting = this.#leadership?.waitingReads();
    if (waiting === undefined) return;
    this.#leadership = undefined;
    if (waiting.length > 0) this.observe('reads dropped with the role');
    this.reads.drop(waiting.filter(({ asker }) => asker === this.id).map(({ request }) => request.id));
    this.clock.reset(this.#nowMs);
  }

  /** Gives up its lead, or its campaign, or what it knows of a leader. */
  stepDown(): void {
    this.follow({ term: this.term, leader: 0 });
  }

  /** Asks whether it could win, which changes neither term nor vote (thesis §9.6). */
  preCampaign(): void {
    this.stepDown();
    this.#role = 'precandidate';
    this.clock.reset(this.#nowMs);
  }

  campaign(): void {
    this.follow({ term: this.term + 1, leader: 0 });
    this.#role = 'candidate';
    this.voteFor(this.id);
    this.clock.reset(this.#nowMs);
  }

  voteFor(id: NodeId): void {
    this.#ballot.voteFor(id);
  }

  lead({ byTransfer }: { readonly byTransfer: boolean }): void {
    const conf = this.confs.newest;
    if (isJoint(conf.conf)) this.observe('leader elected in a joint configuration');
    this.#role = 'leader';
    this.#leader = this.id;
    this.#leadership = new Leadership(
      {
        id: this.id,
        limits: this.limits,
        log: this.log,
        observe: this.observe,
        commitIndex: () => this.commitIndex,
        durableSnapshot: () => this.replicated.snapshotMeta(this.replicated.appliedIndex),
        post: (to, session, body) => this.post({ to, session, vouches: false }, body),
      },
      { conf, termStart: this.log.lastIndex + 1, byTransfer, nowMs: this.#nowMs, fitness: this.#fitness },
    );
    // §5.4.2: entries of earlier terms commit only below one of this term, so the term opens with one that says nothing.
    this.append('noop', NOTHING);
  }

  fail(): void {
    this.#role = 'faulty';
    this.#leader = 0;
    this.#leadership = undefined;
    this.outbox.clear();
  }

  // What the log's changes mean for a leader

  /** A leader only appends (§5.3). */
  append(type: EntryType, data: Uint8Array): Entry {
    const entry = this.log.append({ term: this.term, type, data });
    this.#leadership?.changed();
    return entry;
  }

  /** A leader's own entry, just appended: its peers and quorums are those of this configuration from now on. */
  configure(conf: ConfAt): void {
    this.replicated.configure(conf);
    this.#leadership?.configured(conf, this.#nowMs);
  }

  /** §5.3, §5.4.2: what a quorum holds is committed, if it is of this term; with it, all before it. */
  advanceCommit(): void {
    if (this.#leadership === undefined) return;
    const to = this.#leadership.quorumMatch(this.log.stableIndex);
    if (to <= this.commitIndex || this.log.termAt(to) !== this.term) return;
    if (to > this.log.stableIndex) this.observe('committed before the local disk');
    this.commitTo(to);
  }

  commitTo(index: LogIndex): void {
    const from = this.commitIndex;
    if (index <= from) return;
    const conf = this.replicated.commit(index);
    this.#leadership?.committed({ from, to: index });
    if (this.#leadership === undefined || conf === undefined || isVoter(conf, this.id)) return;
    // Thesis §4.2.2: until here it led a cluster that it is no voter of any more.
    this.observe('removed leader stepped down');
    this.#leadership.announceCommit(this.#nowMs);
    this.#leadership.resign();
    this.stepDown();
  }

  /** A snapshot takes the place of the log. */
  install(meta: SnapshotMeta): void {
    // The stream may be of a later term than its offer; the term is on disk before an entry of it is.
    if (this.#role !== 'follower' || meta.term > this.term) {
      this.follow({ term: Math.max(this.term, meta.term), leader: 0 });
    }
    this.replicated.install(meta);
  }

  persisted(seq: number): void {
    this.replicated.persisted(seq);
    this.#ballot.persisted(seq);
  }

  // Effects

  post({ to, session, vouches, term = this.term }: Envelope, body: MessageBody): void {
    const message: Message = { from: this.id, to, term, clusterId: this.clusterId, session, ...body };
    this.outbox.post(message, { term: this.term, vouches });
  }

  /** Answers a leader's message within its session. */
  answer({ from, session }: Message, body: MessageBody, { vouches = false }: { readonly vouches?: boolean } = {}): void {
    this.post({ to: from, session, vouches }, body);
  }

  takeHardState(seq: number): { readonly hardState?: HardState } {
    if (!this.#ballot.isChanged) return {};
    this.#ballot.written(seq);
    return { hardState: { term: this.term, vote: this.vote, commit: this.replicated.commitOnDisk } };
  }
}
