import { type ConfState, isVoter, type Message, type NodeId, type Status, type Term } from '@transitd/raft-core';
import { holds } from './violation.ts';

const CANDIDATES = 2 ** 20;

/** The leader that a node heard last, by the node's own clock. */
interface Heard {
  readonly term: Term;
  readonly leader: NodeId;
  readonly atMs: number;
  /** Whether the leader has announced the length of its lease in this term. */
  readonly isAnnounced: boolean;
  /** Whether the node has learned since then that the leader closed its connections and refuses new ones. */
  readonly isRefused: boolean;
}

/**
 * The promise that a lease relies on (thesis §6.4.1): a node that has heard a leader votes for no other node until a minimum election
 * timeout of its own clock has passed, even across a restart, unless that leader itself transferred leadership. The promise also binds a
 * node that elects itself. A node that suspects the leader waits only until the lease that the leader announced has ended by
 * the slowest clock, after an undetected pause of 20 ms, as the fastest clock counts it.
 */
export class Promises {
  readonly #electionMs: number;
  readonly #localMs: (id: NodeId) => number;
  readonly #leaseMs: (leader: NodeId) => number;
  readonly #heard = new Map<NodeId, Heard>();
  /** Candidates, by term, that were told to campaign by a leader that had given up its lease. */
  readonly #transfers = new Set<number>();
  /** Terms whose leader has told a node to campaign. From then on nothing relies on a promise made to that leader. */
  readonly #released = new Set<Term>();

  /** @param options.localMs - returns the clock of that node's machine; `leaseMs`: the length of the leases of that node */
  constructor(options: {
    readonly electionMs: number;
    readonly localMs: (id: NodeId) => number;
    readonly leaseMs: (leader: NodeId) => number;
  }) {
    this.#electionMs = options.electionMs;
    this.#localMs = options.localMs;
    this.#leaseMs = options.leaseMs;
  }

  /** Notes that the node learns that this peer closed its connections and refuses new ones. */
  refused(id: NodeId, peer: NodeId): void {
    const heard = this.#heard.get(id);
    if (heard?.leader === peer) this.#heard.set(id, { ...heard, isRefused: true });
  }

  /** Notes that a candidate campaigns because its leader told it to. */
  transferred(candidate: NodeId, term: Term): void {
    this.#transfers.add(candidate * CANDIDATES + term);
  }

  /** Notes that the leader of that term has told a node to campaign. */
  released(term: Term): void {
    this.#released.add(term);
  }

  isReleased(term: Term): boolean {
    return this.#released.has(term);
  }

  /** Notes a message that the node received at `heardMs` by its clock, and its status after it has processed the message. */
  received(id: NodeId, message: Message, { status, heardMs }: { readonly status: Status; readonly heardMs: number }): void {
    const { type, term, from } = message;
    const speaks = type === 'Append' || type === 'Commit' || type === 'Heartbeat' || type === 'SnapOffer';
    if (!speaks || status.term !== term) return;
    const before = this.#heard.get(id);
    const isSame = before?.term === term && before.leader === from;
    const isAnnounced = type === 'Heartbeat' || (isSame && before.isAnnounced);
    this.#heard.set(id, { term, leader: from, atMs: heardMs, isAnnounced, isRefused: false });
  }

  /** Returns whether the node currently votes only for the leader of that term. */
  isBound(id: NodeId, term: Term): boolean {
    const heard = this.#heard.get(id);
    return heard?.term === term && this.#localMs(id) - heard.atMs < this.#promisedMs(heard);
  }

  voted(id: NodeId, candidate: NodeId, term: Term): void {
    const heard = this.#heard.get(id);
    if (heard === undefined || heard.term >= term || this.#transfers.has(candidate * CANDIDATES + term)) return;
    this.#waited(id, candidate, term, heard);
  }

  /**
   * Notes that the node leads. `committed`: the newest configuration that it knows to be committed; a leader that is not a voter of it has
   * stepped down.
   */
  elected(id: NodeId, term: Term, committed: ConfState): void {
    const heard = this.#heard.get(id);
    if (heard === undefined || heard.term >= term || this.#transfers.has(id * CANDIDATES + term)) return;
    if (!this.#released.has(heard.term) && isVoter(committed, heard.leader)) this.#waited(id, id, term, heard);
  }

  #promisedMs({ leader, isAnnounced, isRefused }: Heard): number {
    if (!isRefused || !isAnnounced) return this.#electionMs;
    const leaseMs = this.#leaseMs(leader);
    return leaseMs === 0 ? 0 : Math.min(this.#electionMs, (leaseMs / 0.9 + 20) * 1.1);
  }

  #waited(id: NodeId, candidate: NodeId, term: Term, heard: Heard): void {
    const waitedMs = this.#localMs(id) - heard.atMs;
    // Multiplying by the clock's rate loses up to a millionth of a millisecond.
    holds(
      'a node that has heard a leader votes for no other node for a while',
      waitedMs > this.#promisedMs(heard) - 1e-6,
      () => ({
        id,
        candidate,
        term,
        heard: heard.term,
        waitedMs,
      }),
    );
  }
}
