import type { ConfHistory } from '../confchange/conf-history.ts';
import { isVoter } from '../confchange/conf-state.ts';
import type { Position } from '../log/log-view.ts';
import { type Halves, type VoteResult, voteResult } from '../quorum/joint.ts';
import type { LogIndex, NodeId, Term } from '../types.ts';

/**
 * Whether a node may campaign without waiting for a leader's silence: only if neither the base nor any entry of the log,
 * committed or not, names another member. To be the only voter of the newest configuration is not enough: of {A, B}, leader
 * B removes itself, A stores that, restarts and would win at once, while B still answers reads by the lease that A gave it.
 */
export const isSoleMember = (confs: ConfHistory, id: NodeId): boolean => confs.everyone().every((member) => member === id);

/**
 * A voter may campaign. So may, without counting itself, who lost its vote by an entry that it does not know to be committed
 * (thesis §4.2.2): nobody else may have that entry, and then its log is the longest and it refuses everyone.
 */
export function mayCampaign(confs: ConfHistory, id: NodeId, commitIndex: LogIndex): boolean {
  const { index, conf } = confs.newest;
  return isVoter(conf, id) || (index > commitIndex && isVoter(confs.asOf(index - 1).conf, id));
}

/** §5.4.1: the log with the later last term, or with that term and as long. */
export const isUpToDate = (candidate: Position, own: Position): boolean =>
  candidate.term > own.term || (candidate.term === own.term && candidate.index >= own.index);

/**
 * §5.2, §5.4.1: a vote goes to one candidate per term, whose log has all that this one has. For a pre-vote (thesis §9.6) the
 * answer is what a real vote of that term would get; a later term has no vote yet.
 */
export function wouldGrant(
  ask: { readonly term: Term; readonly from: NodeId; readonly log: Position },
  own: { readonly term: Term; readonly vote: NodeId; readonly log: Position },
): boolean {
  const free = ask.term > own.term || (ask.term === own.term && (own.vote === 0 || own.vote === ask.from));
  return free && isUpToDate(ask.log, own.log);
}

/** The answers of one campaign. */
export class Tally {
  readonly #votes = new Map<NodeId, boolean>();

  /** The first answer of a node counts. */
  note(id: NodeId, granted: boolean): void {
    if (!this.#votes.has(id)) this.#votes.set(id, granted);
  }

  /** Only voters of the candidate's own configuration count, itself included. */
  result(conf: Halves): VoteResult {
    return voteResult(conf, (id) => this.#votes.get(id));
  }
}
