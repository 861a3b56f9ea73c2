import type { Status } from '../../core/raft-core.ts';
import type { Message, NodeId, Term } from '../../types.ts';
import { holds } from './violation.ts';

const CANDIDATES = 2 ** 20;

/**
 * The promise that a lease rests on (thesis §6.4.1): who has heard a leader votes for nobody else until a minimum election
 * timeout of its own clock has passed, also over a restart, unless that leader itself handed over.
 */
export class Promises {
  readonly #electionMs: number;
  readonly #clockRate: (id: NodeId) => number;
  readonly #heard = new Map<NodeId, { readonly term: Term; readonly atMs: number }>();
  /** Candidates, by term, that were told to campaign by a leader that had given up its lease. */
  readonly #transfers = new Set<number>();

  constructor(electionMs: number, clockRate: (id: NodeId) => number) {
    this.#electionMs = electionMs;
    this.#clockRate = clockRate;
  }

  /** A candidate campaigns because its leader told it to. */
  handedOver(candidate: NodeId, term: Term): void {
    this.#transfers.add(candidate * CANDIDATES + term);
  }

  /** The node has taken in a message, and this is what it is now; times are the world's. */
  received(id: NodeId, message: Message, status: Status, nowMs: number): void {
    const { type, term } = message;
    const speaks = type === 'Append' || type === 'Heartbeat' || type === 'SnapOffer';
    if (speaks && status.term === term) this.#heard.set(id, { term, atMs: nowMs });
  }

  voted(id: NodeId, candidate: NodeId, term: Term, nowMs: number): void {
    const heard = this.#heard.get(id);
    if (heard === undefined || heard.term >= term || this.#transfers.has(candidate * CANDIDATES + term)) return;
    const waitedMs = (nowMs - heard.atMs) * this.#clockRate(id);
    // A millionth of a millisecond is lost where the clock's rate is multiplied.
    holds('who has heard a leader votes for nobody else for a while', waitedMs > this.#electionMs - 1e-6, () => ({
      id,
      candidate,
      term,
      heard: heard.term,
      waitedMs,
    }));
  }
}
