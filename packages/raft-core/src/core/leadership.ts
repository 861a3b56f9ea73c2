import type { ConfAt } from '../confchange/conf-history.ts';
import { invariant } from '../invariant.ts';
import { quorumValue } from '../quorum/joint.ts';
import type { ConfState, Entry, Fitness, LogIndex, Message, NodeId, Term } from '../types.ts';
import { UncommittedBytes } from './commit/uncommitted.ts';
import type { LogReadRequest, PeerStatus } from './contract/raft-core.ts';
import { type ConfirmedRead, type Read, ReadIndexQueue } from './reads/read-index.ts';
import type { Progress } from './replication/progress.ts';
import { type LeaderNode, Replication } from './replication/replication.ts';
import { Rounds } from './replication/rounds.ts';
import { Transfer } from './transfer.ts';

export type PeerAnswer = Extract<Message, { type: 'AppendResp' | 'HeartbeatResp' | 'SnapResult' }>;

/** Why a leader steps down by its own decision. */
export type Resignation = 'noQuorum' | 'transferred';

/** Everything that exists only while a node leads: its peers, rounds, waiting reads and transfer. */
export class Leadership {
  readonly termStart: LogIndex;
  /** Term of the last entry before this leader's term. */
  readonly termBefore: Term;
  readonly uncommitted: UncommittedBytes;
  readonly #node: LeaderNode;
  readonly #replication: Replication;
  readonly #rounds: Rounds;
  readonly #reads: ReadIndexQueue;
  readonly #transfer = new Transfer();
  #confirmed: readonly ConfirmedRead[] = [];
  #conf: ConfState;
  #heartbeatDueMs = Number.NEGATIVE_INFINITY;
  /** True if a change may require messages to peers. */
  #isDue = true;
  #fitness: Fitness;
  /** Time at which a sealed leader steps down; until then it only tries to transfer leadership. */
  #resignMs: number | undefined;
  /** An unfit leader tries to transfer leadership once per reason, because proposals are refused during each attempt. */
  #transferTried = false;
  /** An unfit leader transfers leadership to a peer that has answered a round sent at this time or later, and is fit by that answer. */
  #fitFromMs = Number.NEGATIVE_INFINITY;

  constructor(
    node: LeaderNode,
    start: {
      readonly conf: ConfAt;
      readonly termStart: LogIndex;
      readonly nowMs: number;
      readonly fitness: Fitness;
    },
  ) {
    this.#node = node;
    this.termStart = start.termStart;
    this.termBefore = node.log.lastTerm;
    this.uncommitted = new UncommittedBytes(node.limits.uncommittedBytesMax);
    this.#replication = new Replication(node);
    this.#rounds = new Rounds(node.limits.electionMs);
    this.#reads = new ReadIndexQueue(node.observe);
    this.#fitness = start.fitness;
    this.#conf = start.conf.conf;
    this.#replication.configure(start.conf, { next: start.termStart, nowMs: start.nowMs });
    this.fitnessChanged(start.fitness, start.nowMs);
  }

  get isDue(): boolean {
    return (this.#isDue && this.#replication.peers.length > 0) || this.#reads.wantsRound || this.#confirmed.length > 0;
  }
  get transferTo(): NodeId | undefined {
    return this.#transfer.target;
  }

  /** Notes that entries were appended or committed. */
  changed(): void {
    this.#isDue = true;
  }

  configured(conf: ConfAt, nowMs: number): void {
    this.#conf = conf.conf;
    this.#replication.configure(conf, { next: this.#node.log.lastIndex, nowMs });
    this.#confirmReads();
    const { target } = this.#transfer;
    if (target !== undefined && !conf.conf.voters.includes(target)) this.#abortTransfer();
    this.#isDue = true;
  }

  /** Returns the index that a quorum has stored. This node counts only up to its `stableIndex`, and only if it is a voter. */
  quorumMatch(stableIndex: LogIndex): LogIndex {
    return quorumValue(this.#conf, (id) => (id === this.#node.id ? stableIndex : (this.#replication.peer(id)?.match ?? 0)));
  }

  committed({ from, to }: { readonly from: LogIndex; readonly to: LogIndex }): void {
    this.uncommitted.committed(this.#node.log.bytesInMemory({ lo: from + 1, hi: to }));
    if (to >= this.termStart) this.#reads.ownTermCommitted(to);
    this.#isDue = true;
  }

  /** Checks deadlines. Returns why the leader has to step down, or undefined. */
  tick(nowMs: number): Resignation | undefined {
    if (!this.#hasQuorum(nowMs)) return 'noQuorum';
    if (this.#transfer.isOverdue(nowMs)) this.#abortTransfer();
    if (this.#resignMs !== undefined && nowMs >= this.#resignMs) return 'transferred';
    this.#transferIfUnfit(nowMs);
    if (nowMs >= this.#heartbeatDueMs) {
      this.#heartbeatDueMs = nowMs + this.#node.limits.heartbeatMs;
      this.#beginRound({ nowMs, isTimed: true });
      this.#isDue = true;
    }
    this.#replication.dropRemoved(nowMs);
    return undefined;
  }

  /** Posts everything that has become due since the last batch of effects. */
  flush(nowMs: number): { readonly reads: readonly ConfirmedRead[]; readonly readLog: readonly LogReadRequest[] } {
    if (this.#reads.wantsRound) this.#beginRound({ nowMs, isTimed: false });
    if (this.#isDue) this.#replication.replicate(this.#rounds.newest, nowMs);
    this.#isDue = false;
    const reads = this.#confirmed;
    this.#confirmed = [];
    return { reads, readLog: this.#replication.takeReads() };
  }

  /** Handles an answer of this term. */
  answered(answer: PeerAnswer, nowMs: number): void {
    const peer = this.#replication.peer(answer.from);
    if (peer === undefined) return;
    if (peer.session !== answer.session) {
      this.#node.observe('answer of an earlier session ignored');
      return;
    }
    // Even a refusal shows that the peer still followed this leader when it answered.
    peer.heardMs = nowMs;
    if ('round' in answer) this.#answeredRound(peer, answer.round);
    if (answer.type === 'HeartbeatResp') {
      this.#reportedFitness(peer, answer);
      this.#replication.nudge(peer, this.#rounds.newest);
    } else if (answer.type === 'SnapResult') {
      if (answer.ok) this.#acknowledged(peer, answer.index);
      else this.#replication.snapshotFailed(peer);
    } else if (answer.ok) {
      this.#acknowledged(peer, answer.match);
    } else {
      this.#replication.rejected(peer, answer);
    }
    this.#isDue = true;
    this.#transferIfUnfit(nowMs);
  }

  unreachable(id: NodeId): void {
    const peer = this.#replication.peer(id);
    if (peer?.state === 'replicate') peer.probe();
  }

  snapshotFailed(id: NodeId): void {
    const peer = this.#replication.peer(id);
    if (peer !== undefined) this.#replication.snapshotFailed(peer);
  }

  logRead(id: NodeId, entries: readonly Entry[]): void {
    const peer = this.#replication.peer(id);
    if (peer === undefined) return;
    this.#replication.logRead(peer, entries, this.#rounds.newest);
    this.#isDue = true;
  }

  hasPeer(id: NodeId): boolean {
    return this.#replication.peer(id) !== undefined;
  }

  addRead(read: Read): void {
    const commitIndex = this.#node.commitIndex();
    this.#reads.add(read, { commitIndex, ownTermCommitted: commitIndex >= this.termStart });
  }

  /** Returns how many more reads of another node may wait. */
  roomForReadsOf(asker: NodeId): number {
    return this.#node.limits.forwardedReadsMax - this.#reads.waitingOf(asker);
  }

  waitingReads(): readonly Read[] {
    return [...this.#confirmed, ...this.#reads.all()];
  }

  /**
   * Returns whether this leader holds a lease. Then no other node can have been elected: a quorum has answered a round that was sent so
   * recently that each node of the quorum still refuses to vote for others. The leader itself, if it is a voter, counts as if it answered a
   * round sent now.
   */
  holdsLease(nowMs: number): boolean {
    return this.leaseEndMs(nowMs) !== undefined;
  }

  /** Returns when the lease ends unless further rounds are answered; undefined if this leader holds none. */
  leaseEndMs(nowMs: number): number | undefined {
    const { limits, observe, id: own } = this.#node;
    if (limits.leaseMs <= 0 || this.#node.commitIndex() < this.termStart) return undefined;
    if (this.#transfer.leaseEnded) {
      observe('lease refused: leadership is being transferred');
      return undefined;
    }
    const askedMs = quorumValue(this.#conf, (id) => {
      return id === own ? nowMs : (this.#replication.peer(id)?.round.sentAtMs ?? Number.NEGATIVE_INFINITY);
    });
    const endMs = askedMs + limits.leaseMs;
    if (nowMs < endMs) return endMs;
    observe('lease refused: it has expired');
    return undefined;
  }

  /** Starts a transfer to `to`, or to the fit voter with the longest log. Returns false if no voter is fit. */
  transfer(to: NodeId | undefined, nowMs: number): boolean {
    const able = this.#candidates().filter((peer) => peer.fit && nowMs - peer.heardMs < this.#node.limits.electionMs);
    const byLog = able.sort((a, b) => b.match - a.match || a.id - b.id);
    const target = to === undefined ? byLog[0] : byLog.find(({ id }) => id === to);
    if (target === undefined) return false;
    this.#transfer.begin(target.id, nowMs + this.#node.limits.electionMs);
    this.#tellTarget(target);
    this.#isDue = true;
    return true;
  }

  /** This leader steps down, so it tells a voter whose log is complete to campaign. */
  resign(): void {
    const { lastIndex } = this.#node.log;
    const successor = this.#candidates().find((peer) => peer.fit && peer.match === lastIndex);
    if (successor === undefined) return;
    this.#transfer.endLease();
    this.#timeoutNow(successor);
  }

  /** Sends each peer the commit index, at most up to the entry where the peer's log is known to match. */
  announceCommit(nowMs: number): void {
    this.#beginRound({ nowMs, isTimed: false });
  }

  fitnessChanged(fitness: Fitness, nowMs: number): void {
    this.#fitness = fitness;
    this.#transferTried = false;
    // The same event, such as a restore, may make the peers unfit at this moment, so their last reports do not count.
    this.#fitFromMs = nowMs + this.#node.limits.heartbeatMs;
    this.#resignMs = fitness === 'sealed' ? nowMs + 2 * this.#node.limits.electionMs : undefined;
    this.#transferIfUnfit(nowMs);
  }

  status(nowMs: number): readonly PeerStatus[] {
    return this.#replication.peers.map((peer) => ({
      id: peer.id,
      learner: this.#conf.learners.includes(peer.id),
      state: peer.state,
      match: peer.match,
      next: peer.next,
      active: nowMs - peer.heardMs < this.#node.limits.electionMs,
      silentMs: Math.max(0, nowMs - peer.heardMs),
      fit: peer.fit,
      ...(peer.offered === undefined ? {} : { pendingSnapshot: peer.offered.index }),
    }));
  }

  checkInvariants(): void {
    for (const peer of this.#replication.peers) {
      peer.checkInvariants(this.#node.limits);
      invariant(peer.match <= this.#node.log.lastIndex, 'no peer acknowledges more than the leader has', { peer: peer.id });
    }
  }

  #hasQuorum(nowMs: number): boolean {
    const heardMs = quorumValue(this.#conf, (id) => {
      return id === this.#node.id ? nowMs : (this.#replication.peer(id)?.heardMs ?? Number.NEGATIVE_INFINITY);
    });
    return nowMs < heardMs + this.#node.limits.electionMs;
  }

  #beginRound({ nowMs, isTimed }: { readonly nowMs: number; readonly isTimed: boolean }): void {
    const round = this.#rounds.begin(nowMs);
    this.#replication.heartbeat(round, { isTimed, nowMs });
    this.#reads.begun(round);
    // The leader counts as a node that answered its own round; alone it may be a quorum.
    this.#confirmReads();
  }

  #answeredRound(peer: Progress, number: number): void {
    const round = this.#rounds.find(number);
    if (round !== undefined) peer.answered(round);
    this.#confirmReads();
  }

  #confirmReads(): void {
    const answered = quorumValue(this.#conf, (id) => {
      return id === this.#node.id ? this.#rounds.newest : (this.#replication.peer(id)?.round.number ?? 0);
    });
    const reads = this.#reads.answered(answered);
    if (reads.length > 0) this.#confirmed = [...this.#confirmed, ...reads];
  }

  /** Notes whether a peer may lead. If it may not, a transfer to it can only fail. */
  #reportedFitness(peer: Progress, { round, fit }: Extract<Message, { type: 'HeartbeatResp' }>): void {
    const askedMs = this.#rounds.find(round)?.sentAtMs ?? Number.NEGATIVE_INFINITY;
    peer.fitAtMs = fit ? askedMs : undefined;
    if (!fit && peer.id === this.#transfer.target) this.#abortTransfer();
  }

  #acknowledged(peer: Progress, index: LogIndex): void {
    this.#replication.acknowledged(peer, index);
    if (peer.id === this.#transfer.target) this.#tellTarget(peer);
  }

  #tellTarget(target: Progress): void {
    if (!this.#transfer.tell(target.match, this.#node.log.lastIndex)) return;
    this.#node.observe('transfer finished its catch-up');
    this.#timeoutNow(target);
  }

  #timeoutNow({ id, session }: Progress): void {
    const { lastIndex, lastTerm } = this.#node.log;
    this.#node.post(id, session, { type: 'TimeoutNow', lastIndex, lastTerm });
  }

  #abortTransfer(): void {
    this.#node.observe('transfer aborted');
    this.#transfer.abort();
  }

  /** If this leader should not lead, transfers leadership to the first fit voter that has the whole log. */
  #transferIfUnfit(nowMs: number): void {
    if (this.#fitness === 'fit' || this.#transferTried || this.#transfer.target !== undefined) return;
    const { lastIndex } = this.#node.log;
    const successor = this.#candidates().find(({ fitAtMs, match }) => {
      return fitAtMs !== undefined && fitAtMs >= this.#fitFromMs && match === lastIndex;
    });
    if (successor === undefined || !this.transfer(successor.id, nowMs)) return;
    if (this.#fitness === 'sealed') this.#node.observe('sealed leader transferred leadership');
    else this.#transferTried = true;
  }

  /** Returns the peers that could lead: the voters that remain once a joint configuration is left. */
  #candidates(): Progress[] {
    return this.#conf.voters.flatMap((id) => this.#replication.peer(id) ?? []);
  }
}
