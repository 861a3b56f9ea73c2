import type { ConfHistory } from '../../confchange/conf-history.ts';
import { isVoter } from '../../confchange/conf-state.ts';
import type { Position } from '../../log/log-view.ts';
import { type Halves, type VoteResult, voteResult } from '../../quorum/joint.ts';
import type { LogIndex, NodeId, Term } from '../../types.ts';

/**
 * Returns whether a node may campaign without waiting for a leader to be silent: only if neither the base nor any entry of the log,
 * committed or not, names another member. Being the only voter of the newest configuration is not enough. Example: in {A, B}, leader B
 * removes itself, A stores the entry and restarts; A would win at once while B still serves reads by the lease that A backed.
 */
export const isSoleMember = (confs: ConfHistory, id: NodeId): boolean => confs.everyone().every((member) => member === id);

/**
 * Returns whether a node may campaign. Voters may. A node that lost its vote may too, if the entry that took the vote is not known to be
 * committed; it does not count its own vote (thesis §4.2.2). If no other node has that entry, this log is the longest, and this node
 * would refuse every other candidate.
 */
export function mayCampaign(confs: ConfHistory, id: NodeId, commitIndex: LogIndex): boolean {
  const { index, conf } = confs.newest;
  return isVoter(conf, id) || (index > commitIndex && isVoter(confs.asOf(index - 1).conf, id));
}

/** §5.4.1: returns whether a log is at least as up-to-date: a later last term, or the same last term and at least the same length. */
export const isUpToDate = (candidate: Position, own: Position): boolean =>
  candidate.term > own.term || (candidate.term === own.term && candidate.index >= own.index);

/**
 * §5.2, §5.4.1: returns whether this node would vote for the candidate: one candidate per term, whose log lacks nothing that this log has.
 * A pre-vote (thesis §9.6) is answered like a real vote in the requested term; in a later term this node has not voted yet.
 */
export function wouldGrant(
  ask: { readonly term: Term; readonly from: NodeId; readonly log: Position },
  own: { readonly term: Term; readonly vote: NodeId; readonly log: Position },
): boolean {
  const free = ask.term > own.term || (ask.term === own.term && (own.vote === 0 || own.vote === ask.from));
  return free && isUpToDate(ask.log, own.log);
}

/** The answers to one campaign. */
export class Tally {
  readonly #votes = new Map<NodeId, boolean>();

  /** Counts the first answer of each node. */
  note(id: NodeId, granted: boolean): void {
    if (!this.#votes.has(id)) this.#votes.set(id, granted);
  }

  /** Returns the result. Only voters of the candidate's own configuration count, itself included. */
  result(conf: Halves): VoteResult {
    return voteResult(conf, (id) => this.#votes.get(id));
  }
}
