import { changeConf } from '../confchange/change.ts';
import { isVoter, membersOf } from '../confchange/conf-state.ts';
import { invariant } from '../invariant.ts';
import type { LogStart } from '../ports.ts';
import type { ConfChange, ConfState, Entry, Fitness, LogIndex, Message, NodeId, SnapshotMeta } from '../types.ts';
import { encodeConfState } from '../wire/conf-state.ts';
import { Campaign } from './campaign.ts';
import { Follower } from './follower.ts';
import type { PeerAnswer } from './leadership.ts';
import { checkLimits } from './limits.ts';
import type { ConfRefusal, CoreRefusal, PeerStatus, ProposeResult, RaftCore, Ready, Status } from './raft-core.ts';
import type { ConfirmedRead } from './read-index.ts';
import { SnapshotReceiver } from './snapshot-receiver.ts';
import { RaftState, type StateOptions } from './state.ts';

type MessageOf<T extends Message['type']> = Extract<Message, { type: T }>;

export type RaftOptions = StateOptions;

/** The consensus of one node: who may say what to it, and what it wants done. */
export class Raft implements RaftCore {
  readonly #state: RaftState;
  readonly #campaign: Campaign;
  readonly #follower: Follower;
  readonly #snapshots = new SnapshotReceiver();
  #seq = 0;

  /** @throws LogDamage when entries are missing that were committed or applied */
  constructor(start: LogStart, options: RaftOptions) {
    checkLimits(options.limits);
    this.#state = new RaftState(start, options);
    this.#campaign = new Campaign(this.#state);
    this.#follower = new Follower(this.#state, this.#snapshots);
  }

  tick(nowMs: number): void {
    const state = this.#state;
    state.advanceTime(nowMs);
    if (state.role === 'faulty') return;
    state.reads.expire(nowMs);
    const resignation = state.leadership?.tick(nowMs);
    if (resignation === 'noQuorum') state.observe('leader without a quorum stepped down');
    if (resignation !== undefined) state.stepDown();
    this.#leaveJoint();
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
        this.#onRemoved(message);
        break;
      case 'ReadIndex':
        this.#onReadIndex(message);
        break;
      case 'ReadIndexResp':
        this.#onReadIndexAnswer(message);
        break;
    }
  }

  propose(data: Uint8Array): ProposeResult {
    const { leadership, limits, observe } = this.#state;
    const reason = this.#refusal();
    if (reason !== undefined) return { accepted: false, reason };
    if (data.length > limits.entryBytesMax) return { accepted: false, reason: 'tooLarge' };
    if (leadership?.uncommitted.add(data.length) !== true) {
      observe('proposal refused: busy');
      return { accepted: false, reason: 'busy' };
    }
    return accepted(this.#state.append('normal', data));
  }

  proposeConf(change: ConfChange): ProposeResult<ConfRefusal> {
    const reason = this.#refusal() ?? this.#confRefusal();
    if (reason !== undefined) return { accepted: false, reason };
    const changed = changeConf(this.#state.confs.newest.conf, change);
    return 'flaw' in changed ? { accepted: false, reason: 'confInvalid' } : accepted(this.#appendConf(changed.conf));
  }

  readIndex(ctx: number): CoreRefusal | undefined {
    const { role, leader, leadership, fitness, isRemoved, id, incarnation, reads, nowMs, limits, observe } = this.#state;
    if (role === 'faulty') return 'faulty';
    const request = { id: ctx, incarnation };
    if (leadership !== undefined) {
      if (fitness === 'sealed') return 'sealed';
      leadership.ask({ asker: id, request });
      return undefined;
    }
    if (leader === 0) return isRemoved ? 'removed' : 'notLeader';
    observe('read forwarded');
    reads.forward(ctx, nowMs + limits.electionMs);
    this.#state.post({ to: leader, session: 0, vouches: false }, { type: 'ReadIndex', requests: [request] });
    return undefined;
  }

  leaseRead(nowMs: number): LogIndex | undefined {
    const { leadership, fitness, commitIndex } = this.#state;
    return fitness !== 'sealed' && leadership?.holdsLease(nowMs) === true ? commitIndex : undefined;
  }

  transferLeadership(to: NodeId | undefined): CoreRefusal | 'noTarget' | undefined {
    const { leadership, nowMs } = this.#state;
    return this.#refusal() ?? (leadership?.transfer(to, nowMs) === true ? undefined : 'noTarget');
  }

  hasReady(): boolean {
    const { role, hasNews, log, outbox, reads, toApply, commitIndex, leadership } = this.#state;
    if (role === 'faulty') return false;
    const hasEffects = hasNews || log.hasUnwritten || !outbox.isEmpty || reads.hasResults || this.#snapshots.hasWork;
    return hasEffects || toApply.hasMore(commitIndex) || leadership?.isDue === true;
  }

  ready(): Ready {
    const state = this.#state;
    invariant(this.hasReady(), 'a batch of effects is taken when there is one', { role: state.role });
    this.#seq += 1;
    const flushed = state.leadership?.flush(state.nowMs);
    this.#answerReads(flushed?.reads ?? []);
    const { committed, readLog } = state.toApply.take(state.commitIndex);
    return {
      seq: this.#seq,
      events: state.replicated.takeEvents(),
      readLog: [...(readLog === undefined ? [] : [{ for: 0, ...readLog }]), ...(flushed?.readLog ?? [])],
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
    this.#leaveJoint();
  }

  applied(index: LogIndex): void {
    this.#state.replicated.applied(index);
  }

  logRead(reader: NodeId, entries: readonly Entry[]): void {
    const { toApply, leadership, observe } = this.#state;
    invariant(entries.length > 0, 'a log read answers a request, with entries', { reader });
    if (reader === 0) toApply.logRead(entries);
    else if (leadership !== undefined) leadership.logRead(reader, entries);
    else observe('read for a peer dropped');
  }

  compacted(base: SnapshotMeta): void {
    this.#state.replicated.compacted(base);
  }

  unreachable(id: NodeId): void {
    this.#state.leadership?.unreachable(id);
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
    const { role, term, vote, leader, log, commitIndex, replicated, confs, isRemoved, leadership } = this.#state;
    const { conf, index: confIndex } = confs.newest;
    const { conf: committedConf, index: committedConfIndex } = confs.asOf(commitIndex);
    return {
      role,
      term,
      vote,
      leader,
      baseIndex: log.baseIndex,
      lastIndex: log.lastIndex,
      stableIndex: log.stableIndex,
      commitIndex,
      appliedIndex: replicated.appliedIndex,
      conf,
      confIndex,
      committedConf,
      committedConfIndex,
      removed: isRemoved,
      ...(leadership === undefined ? {} : { termStartIndex: leadership.termStart }),
      ...(leadership?.transferTo === undefined ? {} : { transferTo: leadership.transferTo }),
    };
  }

  peers(): readonly PeerStatus[] {
    return this.#state.leadership?.status(this.#state.nowMs) ?? [];
  }

  checkInvariants(): void {
    const { log, confs, toApply, leadership, durableTerm, id } = this.#state;
    log.checkInvariants();
    confs.checkInvariants(log.lastIndex);
    const { conf: _, committedConf: __, ...status } = this.status();
    const { role, vote, leader, term, baseIndex, appliedIndex, stableIndex, commitIndex, lastIndex } = status;
    const { handedOut } = toApply;
    const facts = { ...status, handedOut, durableTerm, lastTerm: log.lastTerm };
    const ordered = baseIndex <= appliedIndex && appliedIndex <= handedOut && handedOut <= commitIndex;
    invariant(ordered, 'base <= applied <= handed out <= commit', facts);
    invariant(commitIndex <= lastIndex, 'commit <= last', facts);
    invariant(handedOut <= stableIndex && stableIndex <= lastIndex, 'handed out <= stable <= last', facts);
    invariant(log.lastTerm <= term && durableTerm <= term, 'no entry and nothing on disk is of a later term', facts);
    invariant((leadership !== undefined) === (role === 'leader'), 'who leads has what a leader has', facts);
    invariant((role !== 'precandidate' && role !== 'candidate') || leader === 0, 'who campaigns knows no leader', facts);
    if (leadership === undefined) return;
    invariant(vote === id && leader === id && durableTerm === term, 'a leader has voted for itself, durably', facts);
    invariant(log.lastTerm === term, 'a leader has an entry of its term', facts);
    invariant(confs.countAbove(commitIndex, leadership.termStart) <= 1, 'a leader changes one configuration at a time', facts);
    leadership.checkInvariants();
  }

  #refusal(): CoreRefusal | undefined {
    const { role, leadership, isRemoved, fitness, confs, id } = this.#state;
    if (role === 'faulty') return 'faulty';
    if (leadership === undefined) return isRemoved ? 'removed' : 'notLeader';
    if (fitness === 'sealed') return 'sealed';
    // A leader that took its own vote away leads only until that is committed.
    const isLeaving = !isVoter(confs.newest.conf, id);
    return isLeaving || leadership.transferTo !== undefined ? 'transferring' : undefined;
  }

  // Membership (§6, thesis §4)

  /** At most one change is uncommitted, and none is begun before the own term has committed an entry (thesis §4.1). */
  #confRefusal(): ConfRefusal | undefined {
    const { leadership, commitIndex, confs, observe } = this.#state;
    if (commitIndex < (leadership?.termStart ?? Number.POSITIVE_INFINITY)) {
      observe('change refused before the own term committed');
      return 'confPending';
    }
    if (confs.newest.index <= commitIndex) return undefined;
    observe('second change refused');
    return 'confPending';
  }

  #appendConf(conf: ConfState): Entry {
    const { confs, commitIndex, leadership } = this.#state;
    invariant(confs.newest.index <= commitIndex, 'one change at a time', { pending: confs.newest.index, commitIndex });
    const data = encodeConfState(conf);
    leadership?.uncommitted.take(data.length);
    const entry = this.#state.append('conf', data);
    this.#state.configure({ index: entry.index, conf });
    return entry;
  }

  /** Whoever leads when a joint configuration is committed ends it, also one whose predecessor began it. */
  #leaveJoint(): void {
    const { leadership, confs, commitIndex, observe } = this.#state;
    const { index, conf } = confs.newest;
    if (leadership === undefined || !conf.autoLeave || index > commitIndex) return;
    if (commitIndex < leadership.termStart || leadership.transferTo !== undefined) return;
    const changed = changeConf(conf, { kind: 'leave' });
    invariant('conf' in changed, 'a joint configuration can be left', { index });
    observe('joint configuration left');
    this.#appendConf(changed.conf);
  }

  /** Ids never come back, so what a member says holds whatever the terms. */
  #onRemoved({ atIndex }: MessageOf<'Removed'>): void {
    const { confs, isRemoved, id, observe } = this.#state;
    const { conf, index } = confs.newest;
    if (isRemoved || (membersOf(conf).has(id) && index > atIndex)) return;
    observe('removed by notice');
    this.#state.replicated.noteRemoved(atIndex);
    this.#state.stepDown();
  }

  // A leader's answers and reads (§5.3, §8, thesis §6.4)

  #onPeerAnswer(answer: PeerAnswer): void {
    const { leadership, term, nowMs } = this.#state;
    // Who is no peer of this leader cannot end its lead.
    if (leadership !== undefined && !leadership.hasPeer(answer.from)) return;
    if (answer.term > term) {
      this.#state.follow({ term: answer.term, leader: 0 });
      return;
    }
    if (leadership === undefined || answer.term < term) return;
    leadership.answered(answer, nowMs);
    this.#state.advanceCommit();
    this.#leaveJoint();
  }

  #onReadIndex({ from, term, requests }: MessageOf<'ReadIndex'>): void {
    const { leadership, fitness } = this.#state;
    if (leadership === undefined || fitness === 'sealed' || term !== this.#state.term) {
      this.#state.post({ to: from, session: 0, vouches: false }, { type: 'ReadIndexResp', requests, index: 0, ok: false });
      return;
    }
    for (const request of requests) leadership.ask({ asker: from, request });
  }

  #onReadIndexAnswer({ requests, index, ok }: MessageOf<'ReadIndexResp'>): void {
    const { incarnation, reads, observe } = this.#state;
    for (const request of requests) {
      // An answer to an earlier run of this node must not confirm a read that has the same number now.
      if (request.incarnation !== incarnation || !reads.answered(request.id)) observe('late read answer ignored');
      else if (ok) reads.confirm({ ctx: request.id, index });
      else reads.drop([request.id]);
    }
  }

  #answerReads(confirmed: readonly ConfirmedRead[]): void {
    const { id, reads } = this.#state;
    for (const { asker, request, index } of confirmed) {
      if (asker === id) reads.confirm({ ctx: request.id, index });
      else
        this.#state.post(
          { to: asker, session: 0, vouches: false },
          { type: 'ReadIndexResp', requests: [request], index, ok: true },
        );
    }
  }
}

const accepted = ({ index, term }: Entry): ProposeResult<never> => ({ accepted: true, index, term });
