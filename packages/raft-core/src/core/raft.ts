import { isVoter } from '../confchange/conf-state.ts';
import { invariant } from '../invariant.ts';
import type { LogStart } from '../ports.ts';
import type { ConfChange, Entry, Fitness, LogIndex, Message, NodeId, SnapshotMeta } from '../types.ts';
import { Campaign } from './campaign.ts';
import { checkLimits } from './contract/limits.ts';
import type {
  ConfRefusal,
  CoreRefusal,
  Lease,
  LogReadRequest,
  PeerStatus,
  Position,
  ProposeResult,
  RaftCore,
  Ready,
  Status,
} from './contract/raft-core.ts';
import { Follower } from './follower.ts';
import type { PeerAnswer } from './leadership.ts';
import { LinearizableReads } from './linearizable-reads.ts';
import { Membership } from './membership.ts';
import { SnapshotReceiver } from './snapshot-receiver.ts';
import { RaftState, type StateOptions } from './state.ts';

export type RaftOptions = StateOptions;

/** The consensus of one node: dispatches calls and messages, and collects the effects. */
export class Raft implements RaftCore {
  readonly #state: RaftState;
  readonly #campaign: Campaign;
  readonly #follower: Follower;
  readonly #membership: Membership;
  readonly #reads: LinearizableReads;
  readonly #snapshots = new SnapshotReceiver();
  #seq = 0;

  /** @throws LogDamage if committed or applied entries are missing */
  constructor(start: LogStart, options: RaftOptions) {
    checkLimits(options.limits);
    this.#state = new RaftState(start, options);
    this.#campaign = new Campaign(this.#state);
    this.#follower = new Follower(this.#state, this.#snapshots);
    this.#membership = new Membership(this.#state);
    this.#reads = new LinearizableReads(this.#state);
  }

  tick(nowMs: number): void {
    const state = this.#state;
    state.advanceTime(nowMs);
    if (state.role === 'faulty') return;
    state.reads.expire(nowMs);
    const resignation = state.leadership?.tick(nowMs);
    if (resignation === 'noQuorum') state.observe('leader without a quorum stepped down');
    if (resignation !== undefined) state.stepDown();
    this.#membership.leaveJoint();
    this.#campaign.tick();
  }

  step(message: Message, nowMs: number): void {
    const state = this.#state;
    state.advanceTime(nowMs);
    const { to, from, clusterId } = message;
    if (state.role === 'faulty' || to !== state.id || from === state.id || clusterId !== state.clusterId) return;
    switch (message.type) {
      case 'PreVote':
      case 'Vote':
        this.#campaign.onRequest(message);
        break;
      case 'PreVoteResp':
      case 'VoteResp':
        this.#campaign.onAnswer(message);
        break;
      case 'TimeoutNow':
        this.#campaign.onTimeoutNow(message);
        break;
      case 'Append':
      case 'Commit':
      case 'Heartbeat':
      case 'SnapOffer':
        this.#follower.onLeader(message);
        break;
      case 'AppendResp':
      case 'HeartbeatResp':
      case 'SnapResult':
        this.#onPeerAnswer(message);
        break;
      case 'Removed':
        this.#membership.onRemoved(message);
        break;
      case 'ReadIndex':
        this.#reads.onRequest(message);
        break;
      case 'ReadIndexResp':
        this.#reads.onAnswer(message);
        break;
    }
  }

  propose(data: Uint8Array): ProposeResult {
    const { leadership, limits, observe, replicated } = this.#state;
    const reason = this.#refusal();
    if (reason !== undefined) return { accepted: false, reason };
    if (data.length > limits.entryBytesMax) return { accepted: false, reason: 'tooLarge' };
    if (!replicated.hasRoom || leadership?.uncommitted.add(data.length) !== true) {
      observe('proposal refused: busy');
      return { accepted: false, reason: 'busy' };
    }
    const { index, term } = this.#state.append('normal', data);
    return { accepted: true, index, term };
  }

  proposeConf(change: ConfChange): ProposeResult<ConfRefusal> {
    const reason = this.#refusal();
    return reason === undefined ? this.#membership.propose(change) : { accepted: false, reason };
  }

  readIndex(ctx: number): CoreRefusal | undefined {
    return this.#reads.request(ctx);
  }

  leaseRead(nowMs: number): LogIndex | undefined {
    return this.#reads.byLease(nowMs);
  }

  lease(nowMs: number): Lease | undefined {
    return this.#reads.lease(nowMs);
  }

  transferLeadership(to: NodeId | undefined): CoreRefusal | 'noTarget' | undefined {
    const { leadership, nowMs } = this.#state;
    return this.#refusal() ?? (leadership?.transfer(to, nowMs) === true ? undefined : 'noTarget');
  }

  hasReady(): boolean {
    const { role, hasChanges, log, outbox, reads, toApply, replicated, leadership } = this.#state;
    if (role === 'faulty') return false;
    const hasEffects = hasChanges || log.hasUnwritten || !outbox.isEmpty || reads.hasResults || this.#snapshots.hasWork;
    return hasEffects || toApply.hasMore(replicated.applyLimit) || leadership?.isDue === true;
  }

  ready(): Ready {
    const state = this.#state;
    invariant(this.hasReady(), 'a batch is taken only if there are effects', { role: state.role });
    this.#seq += 1;
    const flushed = state.leadership?.flush(state.nowMs);
    this.#reads.confirmed(flushed?.reads ?? []);
    const { committed, readLog } = state.toApply.take(state.replicated.applyLimit);
    if ((committed.at(-1)?.index ?? 0) > state.log.stableIndex) state.observe('entries applied before the local disk had them');
    return {
      seq: this.#seq,
      events: state.replicated.takeEvents(),
      readLog: [...(readLog === undefined ? [] : [readLog]), ...(flushed?.readLog ?? [])],
      ...state.replicated.takeCommitHint(),
      ...state.takeHardState(this.#seq),
      ...state.outbox.take(state.durableTerm),
      ...this.#snapshots.take(this.#seq),
      entries: state.log.takeUnwritten(this.#seq),
      committed,
      ...state.reads.take(),
    };
  }

  persisted(seq: number): void {
    invariant(seq <= this.#seq, 'only a batch that was handed out is persisted', { seq, newest: this.#seq });
    if (this.#snapshots.persisted(seq)) this.#state.replicated.installed();
    this.#state.persisted(seq);
    this.#campaign.persisted();
    this.#state.advanceCommit();
    this.#membership.leaveJoint();
  }

  applied(index: LogIndex): void {
    this.#state.replicated.applied(index);
  }

  logRead(request: LogReadRequest, entries: readonly Entry[]): void {
    const { toApply, leadership, observe } = this.#state;
    invariant(entries[0]?.index === request.lo, 'a log read answers a request, with entries from its first on', { ...request });
    if (request.for === 0) toApply.logRead(request, entries);
    else if (leadership !== undefined) leadership.logRead(request.for, entries);
    else observe('old entries for a peer dropped after the read');
  }

  compacted(base: SnapshotMeta): void {
    this.#state.replicated.compacted(base);
  }

  unreachable(id: NodeId): void {
    this.#state.leadership?.unreachable(id);
  }

  refused(id: NodeId): void {
    this.#campaign.onRefused(id);
  }

  get earlyCampaignMs(): number | undefined {
    return this.#campaign.earlyCampaignMs;
  }

  snapshotResult(id: NodeId, ok: boolean): void {
    if (!ok) this.#state.leadership?.snapshotFailed(id);
  }

  snapshotReceived(meta: SnapshotMeta | undefined): boolean {
    return this.#state.role !== 'faulty' && this.#follower.snapshotReceived(meta);
  }

  setFitness(fitness: Fitness): void {
    this.#state.setFitness(fitness);
  }

  setRoom(hasRoom: boolean): void {
    this.#state.replicated.setRoom(hasRoom);
  }

  applyAhead(allowed: boolean): void {
    this.#state.replicated.applyAhead(allowed);
  }

  setStalled(forMs: number): void {
    this.#campaign.setStalled(forMs);
  }

  storageFailed(): void {
    this.#state.fail();
  }

  snapshotMeta(index: LogIndex): SnapshotMeta {
    return this.#state.replicated.snapshotMeta(index);
  }

  status(): Status {
    const { role, term, leader, byTransfer, vote, log, commitIndex, replicated, confs, isRemoved, leadership } = this.#state;
    const { conf, index: confIndex } = confs.newest;
    const { conf: committedConf, index: committedConfIndex } = confs.asOf(commitIndex);
    const status = {
      role,
      term,
      leader,
      byTransfer,
      lastIndex: log.lastIndex,
      commitIndex,
      vote,
      baseIndex: log.baseIndex,
      stableIndex: log.stableIndex,
      appliedIndex: replicated.appliedIndex,
      conf,
      confIndex,
      committedConf,
      committedConfIndex,
      removed: isRemoved,
    };
    if (leadership === undefined) return status;
    const { termStart: termStartIndex, termBefore, transferTo } = leadership;
    const led = { ...status, termStartIndex, termBefore };
    return transferTo === undefined ? led : { ...led, transferTo };
  }

  get termStartIndex(): LogIndex | undefined {
    return this.#state.leadership?.termStart;
  }

  position(): Position {
    const { role, term, leader, byTransfer, log, commitIndex, leadership } = this.#state;
    const base = { role, term, leader, byTransfer, lastIndex: log.lastIndex, commitIndex };
    const transferTo = leadership?.transferTo;
    return transferTo === undefined ? base : { ...base, transferTo };
  }

  peers(): readonly PeerStatus[] {
    return this.#state.leadership?.status(this.#state.nowMs) ?? [];
  }

  checkInvariants(): void {
    const { log, confs, toApply, replicated, leadership, durableTerm, id, role, vote, leader, term, commitIndex } = this.#state;
    log.checkInvariants();
    confs.checkInvariants(log.lastIndex);
    const { baseIndex, stableIndex, lastIndex, lastTerm } = log;
    const { appliedIndex } = replicated;
    const { handedOut } = toApply;
    const indexes = { baseIndex, appliedIndex, handedOut, stableIndex, commitIndex, lastIndex };
    const facts = { role, term, vote, leader, durableTerm, lastTerm, ...indexes, termStartIndex: leadership?.termStart };
    const ordered = baseIndex <= appliedIndex && appliedIndex <= handedOut && handedOut <= commitIndex;
    invariant(ordered, 'base <= applied <= handed out <= commit', facts);
    invariant(commitIndex <= lastIndex, 'commit <= last', facts);
    invariant(appliedIndex <= stableIndex && stableIndex <= lastIndex, 'flushed <= stable <= last', facts);
    const waits = !replicated.isInstalling || handedOut <= baseIndex;
    invariant(waits, 'nothing after a snapshot is handed out before it is installed', facts);
    invariant(lastTerm <= term && durableTerm <= term, 'no entry and no durable term is later than the current term', facts);
    invariant((leadership !== undefined) === (role === 'leader'), "a leader, and only a leader, has a leader's state", facts);
    invariant((role !== 'precandidate' && role !== 'candidate') || leader === 0, 'a node that campaigns knows no leader', facts);
    if (leadership === undefined) return;
    invariant(vote === id && leader === id && durableTerm === term, 'a leader has voted for itself, durably', facts);
    invariant(lastTerm === term, 'a leader has an entry of its term', facts);
    invariant(confs.countAbove(commitIndex, leadership.termStart) <= 1, 'a leader changes one configuration at a time', facts);
    leadership.checkInvariants();
  }

  #refusal(): CoreRefusal | undefined {
    const { role, leadership, isRemoved, fitness, confs, id } = this.#state;
    if (role === 'faulty') return 'faulty';
    if (leadership === undefined) return isRemoved ? 'removed' : 'notLeader';
    if (fitness === 'sealed') return 'sealed';
    // A leader that removed its own vote leads only until that entry is committed.
    const isLeaving = !isVoter(confs.newest.conf, id);
    return isLeaving || leadership.transferTo !== undefined ? 'transferring' : undefined;
  }

  /** Handles a follower's answer to this leader (§5.3, §7). */
  #onPeerAnswer(answer: PeerAnswer): void {
    const { leadership, term, nowMs } = this.#state;
    if (answer.term > term) {
      this.#state.enterTermOf(answer);
      return;
    }
    if (leadership === undefined || answer.term < term) return;
    leadership.answered(answer, nowMs);
    this.#state.advanceCommit();
    this.#membership.leaveJoint();
  }
}
