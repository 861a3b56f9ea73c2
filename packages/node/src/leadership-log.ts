import { type Clock, type Logger, LogLimit } from '@transitd/process';
import type { DriverStatus, NodeId, Term } from '@transitd/raft-core';

export interface MemberNames {
  member(id: NodeId): { readonly name: string } | undefined;
}

type Status = Pick<DriverStatus, 'nodeId' | 'role' | 'term' | 'leader' | 'ready' | 'transferTo' | 'lastIndex' | 'commitIndex'>;

/**
 * Logs each change of leadership that this node sees: elected, ready, transferred, lost, another leader, no leader, elections. Each line
 * has the term, so the logs of all nodes together show which node led in each term.
 */
export class LeadershipLog {
  readonly #log: Logger;
  readonly #names: MemberNames;
  readonly #clock: Clock;
  readonly #limit: LogLimit;
  #before: Status | undefined;
  #ledSinceMs = 0;
  /** The leader that was known last, and its term. Kept while no leader is known. */
  #lastLeader: { readonly leader: NodeId; readonly term: Term } | undefined;

  constructor(log: Logger, names: MemberNames, clock: Clock) {
    this.#log = log;
    this.#names = names;
    this.#clock = clock;
    this.#limit = new LogLimit({ log, clock });
  }

  statusChanged(status: Status): void {
    const before = this.#before;
    this.#before = status;
    const [log, clock] = [this.#log, this.#clock];
    const { term, role, leader, ready, nodeId, lastIndex, commitIndex } = status;
    const wasLeader = before?.role === 'leader';
    const isLeader = role === 'leader';
    if (wasLeader && (!isLeader || before.term !== term))
      log.warn(
        { term: before.term, ledMs: Math.round(clock.nowMs() - this.#ledSinceMs), newTerm: term, ...this.#named(leader) },
        'this node lost the leadership',
      );
    if (isLeader && (!wasLeader || before.term !== term)) {
      this.#ledSinceMs = clock.nowMs();
      log.info({ term, lastIndex, commitIndex }, 'this node was elected leader');
    }
    if (isLeader && ready && !(wasLeader && before.ready && before.term === term))
      log.info(
        { term, commitIndex, electedMs: Math.round(clock.nowMs() - this.#ledSinceMs) },
        'this node leads and has applied an entry of its term',
      );
    if (isLeader) this.#logTransfer(status, wasLeader && before.term === term ? before.transferTo : undefined);
    if (!isLeader) this.#logOthers(status, wasLeader);
    if (leader !== 0) this.#lastLeader = { leader, term };
    if (leader !== 0 && leader === nodeId) this.#limit.ended('election');
  }

  #logTransfer({ term, transferTo }: Status, before: NodeId | undefined): void {
    if (transferTo === before) return;
    const log = this.#log;
    if (before !== undefined) log.warn({ term, to: this.#nameOf(before) }, 'a leadership transfer was given up');
    if (transferTo !== undefined) log.info({ term, to: this.#nameOf(transferTo) }, 'this node transfers its leadership');
  }

  #logOthers({ role, term, leader, lastIndex }: Status, wasLeader: boolean): void {
    const lastLeader = this.#lastLeader;
    if (leader !== 0) {
      if (lastLeader?.leader === leader && lastLeader.term === term) {
        // The same leader was silent and is heard again within its term.
        if (this.#limit.ended('no leader')) this.#log.info({ term, ...this.#named(leader) }, 'the leader is heard again');
      } else this.#log.info({ term, ...this.#named(leader) }, 'this node follows another leader');
      this.#limit.ended('no leader');
      this.#limit.ended('election');
    } else if (role === 'precandidate' || role === 'candidate') {
      // A node that has met no leader yet and gets all pre-votes at once is a new cluster, or the only voter of one: nothing is wrong.
      const isFirst = lastLeader === undefined && role === 'candidate';
      this.#limit.write(
        isFirst ? 'info' : 'warn',
        'election',
        { term, role, lastIndex, ...(lastLeader && { former: this.#nameOf(lastLeader.leader), formerTerm: lastLeader.term }) },
        'this node asks for votes',
      );
      if (!isFirst)
        this.#limit.write(
          'warn',
          'no leader',
          { term, ...(lastLeader && { former: this.#nameOf(lastLeader.leader) }) },
          'no leader is heard',
        );
    } else if (lastLeader !== undefined && !wasLeader)
      this.#limit.write(
        'warn',
        'no leader',
        { term, former: this.#nameOf(lastLeader.leader), formerTerm: lastLeader.term },
        'no leader is heard',
      );
  }

  #named(leader: NodeId): { readonly leader?: string | number } {
    return leader === 0 ? {} : { leader: this.#nameOf(leader) };
  }

  #nameOf(id: NodeId): string | number {
    return this.#names.member(id)?.name ?? id;
  }
}
