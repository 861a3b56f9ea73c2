import { isVoter, votersOf } from '../confchange/conf-state.ts';
import type { Message, NodeId, Term } from '../types.ts';
import { isSoleMember, isUpToDate, mayCampaign, Tally, wouldGrant } from './election/election.ts';
import type { RaftState } from './state.ts';

type VoteRequest = Extract<Message, { type: 'PreVote' | 'Vote' }>;
type VoteAnswer = Extract<Message, { type: 'PreVoteResp' | 'VoteResp' }>;
type TimeoutNow = Extract<Message, { type: 'TimeoutNow' }>;

/** Number of election timeouts for which the sole member stays leader while a write hangs. */
const soleMemberTimeouts = 10;

/** Elections (Raft §5.2, §5.4.1, thesis §9.6): this node's campaigns, and its votes in the campaigns of others. */
export class Campaign {
  readonly #state: RaftState;
  #tally = new Tally();
  /** Why voters refused in the current round; `split` if every voter that refused so far had voted for another candidate. */
  #refusals: 'none' | 'split' | 'other' = 'none';
  /** True while a write hangs: this node could not even store a vote for itself. */
  #stalled = false;
  /** Until this time a sealed voter may campaign, because another voter lacks entries that this node has. */
  #mayCampaignSealedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(state: RaftState) {
    this.#state = state;
  }

  setStalled(forMs: number): void {
    const { role, confs, id, limits } = this.#state;
    this.#stalled = forMs > limits.electionMs;
    // The sole member steps down only so that its callers get an answer: no other node could lead instead.
    const patienceMs = isSoleMember(confs, id) ? soleMemberTimeouts * limits.electionMs : limits.electionMs;
    if (role === 'leader' && forMs > patienceMs) this.#state.stepDown();
  }

  /** Starts a campaign when one is due. */
  tick(): void {
    const { role, clock, nowMs, confs, id, durableTerm, term, fitness } = this.#state;
    if (role === 'leader') return;
    // No vote is requested until the ballot is durable. A new ballot would only wait for this one to be written.
    if (role === 'candidate' && durableTerm < term) return;
    const isAlone = role === 'follower' && isSoleMember(confs, id);
    if (!isAlone && !clock.isDue(nowMs)) return;
    const mayLead = fitness !== 'sealed' || nowMs < this.#mayCampaignSealedUntilMs;
    if (mayLead && this.#mayCampaign()) {
      this.#preCampaign();
      return;
    }
    clock.reset(nowMs);
    if (role !== 'follower') this.#state.stepDown();
  }

  /**
   * Handles the report that a peer closed its connections and refuses new ones. If it is the leader of this term, this node suspects that
   * it has ended, and campaigns once before the election timeout.
   */
  onRefused(id: NodeId): void {
    const { role, leader, clock, nowMs, observe } = this.#state;
    if (role === 'follower' && leader === id && clock.suspect(nowMs, this.#placeAfter(id))) observe('leader suspected');
  }

  /** See `RaftCore`. */
  get earlyCampaignMs(): number | undefined {
    const { role, clock } = this.#state;
    return role === 'follower' ? clock.suspectedDeadlineMs : undefined;
  }

  onRequest(ask: VoteRequest): void {
    const state = this.#state;
    const refusal = ask.transfer ? undefined : this.#refusalByTime();
    if (refusal !== undefined) {
      state.observe(`vote refused: ${refusal}`);
      this.#answer(ask, { reject: true });
      return;
    }
    if (ask.type === 'Vote' && ask.term > state.term) state.becomeFollower({ term: ask.term, leader: 0 });
    if (ask.type === 'Vote' && ask.term === state.term && ask.transfer) state.noteTransfer();
    const log = { index: ask.lastIndex, term: ask.lastTerm };
    const own = { term: state.term, vote: state.vote, log: state.last };
    if (!wouldGrant({ term: ask.term, from: ask.from, log }, own)) {
      const longerLog = !isUpToDate(log, own.log);
      if (longerLog) this.#refusedShorterLog(ask);
      const votedElsewhere = !longerLog && ask.term === own.term;
      this.#answer(ask, { reject: true, longerLog, votedElsewhere });
      return;
    }
    // Only the log decides: the candidate may be a voter of a configuration that this node does not have yet.
    if (!isVoter(state.confs.newest.conf, state.id)) state.observe('learner voted');
    if (!ask.transfer && state.clock.isEarly(state.nowMs)) state.observe('vote given early');
    if (ask.type === 'Vote') {
      state.stepDown();
      state.voteFor(ask.from);
      state.clock.reset(state.nowMs);
    }
    this.#answer(ask, { reject: false });
  }

  onAnswer(answer: VoteAnswer): void {
    const { type, from, term, reject, forTerm, votedElsewhere } = answer;
    const state = this.#state;
    if (reject && term > state.term) {
      state.enterTermOf(answer);
      return;
    }
    // The term of the sender does not matter; what counts is the term that the vote is granted for.
    const asked = type === 'PreVoteResp' ? 'precandidate' : 'candidate';
    const askedTerm = type === 'PreVoteResp' ? state.term + 1 : state.term;
    if (state.role !== asked || forTerm !== askedTerm) return;
    if (!reject && term < state.term) state.observe('a lagging node granted its vote');
    this.#tally.note(from, !reject);
    if (reject && asked === 'candidate' && isVoter(state.confs.newest.conf, from)) this.#refused({ votedElsewhere });
    this.#count();
  }

  /**
   * Campaigns because a leader has given up its lease and transfers leadership: without a pre-vote, and voters that heard that leader
   * recently do not refuse. A sealed node answers instead that it is unfit, so that the leader does not wait for it.
   */
  onTimeoutNow(message: TimeoutNow): void {
    const { from, term, lastIndex, lastTerm } = message;
    const state = this.#state;
    // Only a leader may end its own lease. A target that has all entries of the leader knows its term.
    if (term !== state.term || from !== state.leader) return;
    if (state.fitness === 'sealed') {
      state.answer(message, { type: 'HeartbeatResp', round: 0, fit: false });
      return;
    }
    const hasAll = lastIndex === state.log.lastIndex && lastTerm === state.log.lastTerm;
    const isTarget = hasAll && isVoter(state.confs.newest.conf, state.id);
    if (!isTarget || !this.#mayCampaign()) return;
    state.observe('a transfer started a campaign');
    this.#campaign({ byTransfer: true });
  }

  /** §5.2: the vote for itself counts once it is durable. Otherwise a crash could let this node campaign twice in one term. */
  persisted(): void {
    const { role, durableTerm, term, id } = this.#state;
    if (role !== 'candidate' || durableTerm < term) return;
    this.#tally.note(id, true);
    this.#count();
  }

  /** Returns the place of this node, from 0, among the voters that may follow this leader. */
  #placeAfter(leader: NodeId): number {
    const { id, confs } = this.#state;
    return votersOf(confs.newest.conf).filter((voter) => voter !== leader && voter < id).length;
  }

  #mayCampaign(): boolean {
    const { observe, isRemoved, replicated, confs, id, commitIndex } = this.#state;
    if (this.#stalled) observe('node with a stalled disk did not campaign');
    return !this.#stalled && !isRemoved && !replicated.isInstalling && mayCampaign(confs, id, commitIndex);
  }

  #preCampaign(): void {
    const state = this.#state;
    if (state.fitness === 'sealed') state.observe('sealed node campaigned to pass its log on');
    if (!isVoter(state.confs.newest.conf, state.id)) state.observe('node without a vote campaigned');
    state.becomePrecandidate();
    this.#tally = new Tally();
    this.#tally.note(state.id, true);
    this.#ask('PreVote', { term: state.term + 1, transfer: false });
    this.#count();
  }

  /** A transfer permits voters to ignore a leader heard recently. The permission is valid for this one campaign. */
  #campaign({ byTransfer }: { readonly byTransfer: boolean }): void {
    this.#state.becomeCandidate();
    if (byTransfer) this.#state.noteTransfer();
    this.#tally = new Tally();
    this.#refusals = 'none';
    this.#ask('Vote', { term: this.#state.term, transfer: byTransfer });
  }

  /** §5.2: this node asks for votes once its own vote is durable; otherwise it could ask again with a shorter log after a crash. */
  #ask(type: VoteRequest['type'], { term, transfer }: { readonly term: Term; readonly transfer: boolean }): void {
    const { id, confs, last } = this.#state;
    for (const to of votersOf(confs.newest.conf)) {
      if (to === id) continue;
      const envelope = { to, session: 0, vouches: type === 'Vote', term };
      this.#state.post(envelope, { type, lastIndex: last.index, lastTerm: last.term, transfer });
    }
  }

  /**
   * A split vote says nothing against this candidate, so it retries soon instead of losing a whole election timeout. After any other
   * refusal the next round would probably be refused too, so the node waits as long as before a new campaign.
   */
  #refused({ votedElsewhere }: { readonly votedElsewhere: boolean }): void {
    const { clock, nowMs, observe } = this.#state;
    const before = this.#refusals;
    this.#refusals = votedElsewhere && before !== 'other' ? 'split' : 'other';
    if (this.#refusals === before) return;
    if (this.#refusals === 'split') {
      observe('a split vote was retried early');
      clock.retrySoon(nowMs);
    } else if (before === 'split') clock.reset(nowMs);
  }

  #count(): void {
    const state = this.#state;
    const result = this.#tally.result(state.confs.newest.conf);
    if (result === 'lost') state.stepDown();
    if (result !== 'won') return;
    if (state.role === 'precandidate') this.#campaign({ byTransfer: false });
    else state.becomeLeader();
  }

  /** A leader counts as a node that has heard a leader, namely itself. */
  #refusalByTime(): 'a leader was heard' | 'the node has just started' | undefined {
    const { role, clock, nowMs } = this.#state;
    return role === 'leader' ? 'a leader was heard' : clock.refusal(nowMs);
  }

  /** Lets a sealed voter campaign too, because this node may be the only one with the last entries of its log. */
  #refusedShorterLog({ type, from }: VoteRequest): void {
    const { observe, confs, fitness, id, nowMs, limits } = this.#state;
    observe('vote refused: the voter has a longer log');
    const { conf } = confs.newest;
    if (type !== 'PreVote' || fitness !== 'sealed' || !isVoter(conf, from) || !isVoter(conf, id)) return;
    this.#mayCampaignSealedUntilMs = nowMs + 2 * limits.electionMs;
  }

  #answer(
    { type, from, term: forTerm }: VoteRequest,
    { reject, longerLog = false, votedElsewhere = false }: { reject: boolean; longerLog?: boolean; votedElsewhere?: boolean },
  ): void {
    const answer = type === 'PreVote' ? 'PreVoteResp' : 'VoteResp';
    const vouches = answer === 'VoteResp' && !reject;
    this.#state.post({ to: from, session: 0, vouches }, { type: answer, reject, forTerm, longerLog, votedElsewhere });
  }
}
