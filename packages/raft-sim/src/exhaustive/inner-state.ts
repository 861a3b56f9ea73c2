import type { Message, NodeId, PeerStatus, RaftLimits, Role, Status } from '@transitd/raft-core';

/** The visible state of a core before and after one input. */
export interface Turn {
  readonly before: Status;
  readonly after: Status;
  readonly message: Message | undefined;
  readonly sent: readonly Message[];
  readonly nowMs: number;
}

/**
 * The part of a core's state that is not visible but decides its behavior, derived from its inputs and outputs: two cores with equal
 * visible and equal inner states behave the same from then on. The inner state leaves out what all cores have in common once their effects
 * are carried out: a probe is always paused, a window always reaches the end of the log, a peer has always been sent the commit index as
 * far as its log is known to match.
 */
export class InnerState {
  readonly #limits: RaftLimits;
  /** The time at which the last message of a leader arrived, and the time since which the node waits to campaign. */
  #heardMs = Number.NEGATIVE_INFINITY;
  #waitsSinceMs = 0;
  /** The answers to the current campaign, the first of each node. */
  readonly #answers = new Map<NodeId, boolean>();
  /** Why voters refused in the candidate's current round, which decides when it retries. */
  #refusals: 'none' | 'split' | 'other' = 'none';
  /** The time since which the node waits to retry after a split vote, instead of the whole election timeout. */
  #retriesSinceMs: number | undefined;
  /** A leader's newest heartbeat round. */
  #round = 0;
  /** Peers whose next heartbeat answer may trigger an empty Append. */
  readonly #toNudge = new Set<NodeId>();

  constructor(limits: RaftLimits) {
    this.#limits = limits;
  }

  turned(turn: Turn): void {
    this.#setClock(turn);
    this.#noteRefusal(turn);
    this.#count(turn);
    if (turn.after.role === 'leader') this.#lead(turn);
    else {
      this.#round = 0;
      this.#toNudge.clear();
    }
  }

  /** @param role, peers - the current role and peers of the core */
  print({ role, peers, nowMs }: { readonly role: Role; readonly peers: readonly PeerStatus[]; readonly nowMs: number }): string {
    const { electionMs, electionJitterMs } = this.#limits;
    if (role === 'leader') {
      const each = peers.map(({ id, state, match, next, silentMs }) => {
        return [id, state, match, next, Math.min(silentMs, electionMs), this.#toNudge.has(id)];
      });
      return [this.#round, ...each].join(' ');
    }
    const heard = Math.min(nowMs - this.#heardMs, electionMs);
    const waited = Math.min(nowMs - this.#waitsSinceMs, electionMs + electionJitterMs);
    const retries = this.#retriesSinceMs === undefined ? '' : Math.min(nowMs - this.#retriesSinceMs, electionJitterMs);
    return [heard, waited, this.#refusals, retries, ...[...this.#answers].sort(([a], [b]) => a - b)].join(' ');
  }

  #setClock({ before, after, message, sent, nowMs }: Turn): void {
    const isLeaders = message?.type === 'Append' || message?.type === 'Commit' || message?.type === 'Heartbeat';
    const isHeard = isLeaders && message.term === after.term;
    if (isHeard) this.#heardMs = nowMs;
    const isGiven = sent.some((answer) => asks(answer) || (answer.type === 'VoteResp' && !answer.reject));
    const isDeposed = before.role === 'leader' && after.role !== 'leader';
    if (isHeard || isGiven || isDeposed) this.#waitsFrom(nowMs);
  }

  #waitsFrom(nowMs: number): void {
    this.#waitsSinceMs = nowMs;
    this.#retriesSinceMs = undefined;
  }

  /** Judges a refusal as the core does: a round shortens the wait only if every refusal in it was a split vote. */
  #noteRefusal({ before, message, sent, nowMs }: Turn): void {
    if (sent.some(({ type }) => type === 'Vote')) this.#refusals = 'none';
    const isRefusal = message?.type === 'VoteResp' && message.reject && message.forTerm === before.term;
    if (!isRefusal || before.role !== 'candidate' || message.term > before.term) return;
    if (!before.conf.voters.includes(message.from) && !before.conf.votersOutgoing.includes(message.from)) return;
    const known = this.#refusals;
    this.#refusals = message.votedElsewhere && known !== 'other' ? 'split' : 'other';
    if (this.#refusals === 'split' && known !== 'split') this.#retriesSinceMs = nowMs;
    if (this.#refusals === 'other' && known === 'split') this.#waitsFrom(nowMs);
  }

  #count({ after, message, sent }: Turn): void {
    const { role, term } = after;
    const isAsking = role === 'precandidate' || role === 'candidate';
    if (!isAsking || sent.some(asks)) this.#answers.clear();
    else if (message?.type === 'PreVoteResp' || message?.type === 'VoteResp') {
      const [asked, forTerm] = role === 'candidate' ? ['VoteResp', term] : ['PreVoteResp', term + 1];
      const isCounted = message.type === asked && message.forTerm === forTerm && !this.#answers.has(message.from);
      if (isCounted) this.#answers.set(message.from, !message.reject);
    }
  }

  #lead({ message, sent }: Turn): void {
    const isAnswered = message?.type === 'HeartbeatResp' && sent.some(({ to }) => to === message.from);
    if (isAnswered) this.#toNudge.delete(message.from);
    for (const told of sent) {
      if (told.type !== 'Heartbeat') continue;
      this.#round = told.round;
      this.#toNudge.add(told.to);
    }
  }
}

const asks = ({ type }: Message): boolean => type === 'PreVote' || type === 'Vote';
