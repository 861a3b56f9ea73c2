import type { ConfAt, ConfHistory } from '../confchange/conf-history.ts';
import { isJoint, isVoter, membersOf } from '../confchange/conf-state.ts';
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
import type { CommittedEntries } from './commit/committed.ts';
import { ReplicatedLog } from './commit/replicated-log.ts';
import type { Observe } from './contract/coverage-events.ts';
import type { RaftLimits } from './contract/limits.ts';
import { Outbox } from './contract/outbox.ts';
import { Ballot } from './election/ballot.ts';
import { ElectionClock } from './election/election-clock.ts';
import { Leadership } from './leadership.ts';
import { PendingReads } from './reads/pending-reads.ts';

export interface StateOptions {
  /** The last entry that the state machine holds durably. */
  readonly applied: LogIndex;
  readonly limits: RaftLimits;
  /** Seed of the random part of election timeouts; nodes should differ. */
  readonly seed: number;
  readonly fitness?: Fitness;
  /** Whether an earlier incarnation learned that this node is no longer a member. */
  readonly removed?: boolean;
  readonly observe?: Observe;
}

/** The receiver of a message. `vouches`: the message vouches for stored state and leaves only when that is durable. */
export interface Envelope {
  readonly to: NodeId;
  readonly session: number;
  readonly vouches: boolean;
  /** The node's own term; in a pre-vote, the next term. */
  readonly term?: Term;
}

const NOTHING = new Uint8Array(0);

/**
 * The state of one node (Raft figure 2) and its transitions: the only place where a role, a term or a vote changes, and where the leader's
 * part learns of changes to the log.
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
  /** The newest term in which a node campaigned because its leader had told it to. */
  #termByTransfer: Term | undefined;
  #leadership: Leadership | undefined;
  #fitness: Fitness;
  #nowMs = Number.NEGATIVE_INFINITY;

  /** @throws LogDamage if committed or applied entries are missing */
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
  /** Id of the leader; 0 if none is known. */
  get leader(): NodeId {
    return this.#leader;
  }
  /** Whether a transfer of leadership began this term, as far as this node knows. */
  get byTransfer(): boolean {
    return this.#termByTransfer === this.term;
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
  /** The newest durable term. */
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
  get hasChanges(): boolean {
    return this.#ballot.isChanged || this.replicated.hasChanges;
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

  /** Becomes a follower, in this term or a later one; `leader` is 0 if none is known. */
  becomeFollower({ term, leader }: { readonly term: Term; readonly leader: NodeId }): void {
    this.#ballot.enter(term);
    if (leader !== this.#leader) this.reads.leaderLost();
    this.#leader = leader;
    this.#role = 'follower';
    const waiting = this.#leadership?.waitingReads();
    if (waiting === undefined) return;
    this.#leadership = undefined;
    if (waiting.length > 0) this.observe('reads dropped because the role changed');
    this.reads.drop(waiting.filter(({ asker }) => asker === this.id).map(({ request }) => request.id));
    this.clock.reset(this.#nowMs);
  }

  /**
   * Enters the later term of an answer, if its sender is in the configuration. The answer may be late and its sender removed since; then
   * its term would end the leadership of this node, or of the leader that this node follows, without need.
   */
  enterTermOf({ from, term }: Message): void {
    const isHeard = this.#leadership?.hasPeer(from) ?? membersOf(this.confs.newest.conf).has(from);
    if (isHeard) this.becomeFollower({ term, leader: 0 });
  }

  /** Gives up leadership, a campaign, or the known leader. */
  stepDown(): void {
    this.becomeFollower({ term: this.term, leader: 0 });
  }

  /** Starts a pre-vote, which asks whether this node could win and changes neither term nor vote (thesis §9.6). */
  becomePrecandidate(): void {
    this.stepDown();
    this.#role = 'precandidate';
    this.clock.reset(this.#nowMs);
  }

  becomeCandidate(): void {
    this.becomeFollower({ term: this.term + 1, leader: 0 });
    this.#role = 'candidate';
    this.voteFor(this.id);
    this.clock.reset(this.#nowMs);
  }

  /** Notes that a node campaigns in this term because its leader has told it to. */
  noteTransfer(): void {
    this.#termByTransfer = this.term;
  }

  voteFor(id: NodeId): void {
    this.#ballot.voteFor(id);
  }

  becomeLeader(): void {
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
      { conf, termStart: this.log.lastIndex + 1, nowMs: this.#nowMs, fitness: this.#fitness },
    );
    // §5.4.2: entries of earlier terms commit only below an entry of this term, so the term begins with an empty one.
    this.append('noop', NOTHING);
  }

  fail(): void {
    this.#role = 'faulty';
    this.#leader = 0;
    this.#leadership = undefined;
    this.outbox.clear();
  }

  // Effects of log changes on a leader

  /** Appends an entry; a leader only appends (§5.3). */
  append(type: EntryType, data: Uint8Array): Entry {
    const entry = this.log.append({ term: this.term, type, data });
    this.#leadership?.changed();
    return entry;
  }

  /** Puts the configuration that this leader has just appended in force: from now on it decides the peers and quorums. */
  configure(conf: ConfAt): void {
    this.replicated.configure(conf);
    this.#leadership?.configured(conf, this.#nowMs);
  }

  /** §5.3, §5.4.2: commits what a quorum holds if it is of this term, and with it everything before. */
  advanceCommit(): void {
    if (this.#leadership === undefined) return;
    const to = this.#leadership.quorumMatch(this.log.stableIndex);
    if (to <= this.commitIndex || this.log.termAt(to) !== this.term) return;
    if (to > this.log.stableIndex) this.observe('entries committed before the local disk had them');
    this.commitTo(to);
  }

  commitTo(index: LogIndex): void {
    const from = this.commitIndex;
    if (index <= from) return;
    const conf = this.replicated.commit(index);
    this.#leadership?.committed({ from, to: index });
    if (this.#leadership === undefined || conf === undefined || isVoter(conf, this.id)) return;
    // Thesis §4.2.2: until this commit the node led the cluster although it no longer had a vote.
    this.observe('removed leader stepped down');
    this.#leadership.announceCommit(this.#nowMs);
    this.#leadership.resign();
    this.stepDown();
  }

  /** Replaces the log with a snapshot. */
  install(meta: SnapshotMeta): void {
    // The snapshot may be of a later term than its offer; that term must be durable before an entry of that term is.
    if (this.#role !== 'follower' || meta.term > this.term) {
      this.becomeFollower({ term: Math.max(this.term, meta.term), leader: 0 });
    }
    this.outbox.withdraw(meta.index + 1);
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

  /**
   * Answers a leader's message within its session. Sessions and rounds count from 1 in each term, so an answer to a message of an earlier
   * term names no session: it only tells its receiver the newer term. Otherwise it would count if the receiver leads again by now.
   */
  answer({ from, term, session }: Message, body: MessageBody, { vouches = false }: { readonly vouches?: boolean } = {}): void {
    this.post({ to: from, session: term === this.term ? session : 0, vouches }, body);
  }

  takeHardState(seq: number): { readonly hardState?: HardState } {
    if (!this.#ballot.isChanged) return {};
    this.#ballot.written(seq);
    return { hardState: { term: this.term, vote: this.vote, commit: this.replicated.commitOnDisk } };
  }
}
