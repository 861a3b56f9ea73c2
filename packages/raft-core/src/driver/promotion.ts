import { isJoint } from '../confchange/conf-state.ts';
import type { PeerStatus, RaftCore } from '../core/contract/raft-core.ts';
import type { LogIndex, NodeId, Term } from '../types.ts';
import type { DriverOptions } from './options.ts';

interface CatchUp {
  /** A round ends when the learner holds the entry that was the leader's last one when the round began. */
  readonly targetIndex: LogIndex;
  readonly startedMs: number;
  /** Start of the period in which all of the learner's rounds have been short. */
  readonly keepsUpSinceMs: number | undefined;
}

/**
 * Decides when a learner has caught up (thesis §4.2.1). Under load a learner never comes within a fixed distance of the leader, so
 * catching up is measured in rounds. If a round is shorter than half an election timeout, the learner would, as a voter, delay commits no
 * longer than an election does.
 */
export class Promotion {
  readonly #roundMs: number;
  readonly #stableMs: number;
  #term: Term = 0;
  readonly #catchUps = new Map<NodeId, CatchUp>();

  constructor({ electionMs, promotionStableMs }: { readonly electionMs: number; readonly promotionStableMs: number }) {
    this.#roundMs = electionMs / 2;
    this.#stableMs = promotionStableMs;
  }

  /** Makes a learner a voter if it keeps up and `promotes` allows it; on a leader, one configuration change at a time. */
  promote(core: RaftCore, promotes: DriverOptions['promotes'], nowMs: number): void {
    const { role, conf, confIndex, commitIndex, term, lastIndex } = core.status();
    if (promotes === undefined || role !== 'leader' || conf.learners.length === 0) return;
    const learners = core.peers().filter(({ id, learner }) => learner && promotes(id, conf));
    const [id] = this.due(learners, { term, lastIndex, nowMs });
    if (id === undefined || isJoint(conf) || confIndex > commitIndex) return;
    core.proposeConf({ kind: 'change', members: [{ id, to: 'voter' }] });
  }

  /** Returns the learners that may become voters now, in the order of their ids. Only the leader of `term` calls this. */
  due(
    learners: readonly PeerStatus[],
    leader: { readonly term: Term; readonly lastIndex: LogIndex; readonly nowMs: number },
  ): NodeId[] {
    if (leader.term !== this.#term) this.#catchUps.clear();
    this.#term = leader.term;
    for (const id of this.#catchUps.keys()) if (!learners.some((learner) => learner.id === id)) this.#catchUps.delete(id);
    return learners.filter((learner) => this.#keepsUp(learner, leader)).map(({ id }) => id);
  }

  #keepsUp(
    { id, match, active }: PeerStatus,
    { lastIndex, nowMs }: { readonly lastIndex: LogIndex; readonly nowMs: number },
  ): boolean {
    const round = active ? this.#catchUps.get(id) : undefined;
    if (round === undefined) {
      this.#catchUps.set(id, { targetIndex: lastIndex, startedMs: nowMs, keepsUpSinceMs: undefined });
      return false;
    }
    if (match < round.targetIndex) return false;
    const wasShort = nowMs - round.startedMs < this.#roundMs;
    const keepsUpSinceMs = wasShort ? (round.keepsUpSinceMs ?? round.startedMs) : undefined;
    this.#catchUps.set(id, { targetIndex: lastIndex, startedMs: nowMs, keepsUpSinceMs });
    return keepsUpSinceMs !== undefined && nowMs - keepsUpSinceMs >= this.#stableMs;
  }
}
