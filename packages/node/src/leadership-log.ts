import { type Logger, LogLimit } from '@transitd/process';
import type { DriverStatus, NodeId, Term } from '@transitd/raft-core';

export interface LeadershipLogParts {
  readonly log: Logger;
  /** The name of a member; undefined for one that is unknown. */
  readonly nameOf: (id: NodeId) => string | undefined;
  /** Monotonic, in milliseconds. */
  readonly nowMs: () => number;
}

type Status = Pick<DriverStatus, 'nodeId' | 'role' | 'term' | 'leader' | 'ready' | 'lastIndex' | 'commitIndex'>;

/**
 * Logs each change of leadership that this node sees: elected, serving, lost, another leader, none, elections. With the term in each line, the
 * logs of all nodes together show who led when.
 */
export class LeadershipLog {
  readonly #parts: LeadershipLogParts;
  readonly #limit: LogLimit;
  #before: Status | undefined;
  #ledSinceMs = 0;
  /** The newest leader that was heard, and its term. */
  #heard: { readonly leader: NodeId; readonly term: Term } | undefined;

  constructor(parts: LeadershipLogParts) {
    this.#parts = parts;
    this.#limit = new LogLimit(parts);
  }

  statusChanged(status: Status): void {
    const before = this.#before;
    this.#before = status;
    const { log, nowMs } = this.#parts;
    const { term, role, leader, ready, nodeId, lastIndex, commitIndex } = status;
    const led = before?.role === 'leader';
    const leads = role === 'leader';
    if (led && (!leads || before.term !== term))
      log.warn(
        { term: before.term, ledMs: Math.round(nowMs() - this.#ledSinceMs), newTerm: term, ...this.#named(leader) },
        'this node lost the leadership',
      );
    if (leads && (!led || before.term !== term)) {
      this.#ledSinceMs = nowMs();
      log.info({ term, lastIndex, commitIndex }, 'this node was elected leader');
    }
    if (leads && ready && !(led && before.ready && before.term === term))
      log.info(
        { term, commitIndex, electedMs: Math.round(nowMs() - this.#ledSinceMs) },
        'this node leads and has applied an entry of its term',
      );
    if (!leads) this.#logOthers(status, led);
    if (leader !== 0) this.#heard = { leader, term };
    if (leader !== 0 && leader === nodeId) this.#limit.ended('election');
  }

  #logOthers({ role, term, leader, lastIndex }: Status, led: boolean): void {
    const heard = this.#heard;
    if (leader !== 0) {
      if (heard?.leader === leader && heard.term === term) {
        // Lost and heard again within the same term.
        if (this.#limit.ended('no leader')) this.#parts.log.info({ term, ...this.#named(leader) }, 'the leader is heard again');
      } else this.#parts.log.info({ term, ...this.#named(leader) }, 'this node follows another leader');
      this.#limit.ended('no leader');
      this.#limit.ended('election');
    } else if (role === 'precandidate' || role === 'candidate') {
      this.#limit.write(
        'warn',
        'election',
        { term, role, lastIndex, ...(heard && { former: this.#nameOf(heard.leader), formerTerm: heard.term }) },
        'this node asks for votes',
      );
      this.#limit.write(
        'warn',
        'no leader',
        { term, ...(heard && { former: this.#nameOf(heard.leader) }) },
        'no leader is heard',
      );
    } else if (heard !== undefined && !led)
      this.#limit.write(
        'warn',
        'no leader',
        { term, former: this.#nameOf(heard.leader), formerTerm: heard.term },
        'no leader is heard',
      );
  }

  #named(leader: NodeId): { readonly leader?: string | number } {
    return leader === 0 ? {} : { leader: this.#nameOf(leader) };
  }

  #nameOf(id: NodeId): string | number {
    return this.#parts.nameOf(id) ?? id;
  }
}
