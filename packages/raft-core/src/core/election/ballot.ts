import { invariant } from '../../invariant.ts';
import type { NodeId, Term } from '../../types.ts';

/** A node's term and vote (Raft figure 2), which must survive a restart, and which of them are durable. */
export class Ballot {
  #term: Term;
  #vote: NodeId;
  /** True if the ballot has changed since it was last handed out to be written. */
  #isChanged = false;
  /** The newest durable term. */
  #durableTerm: Term;
  readonly #written: { readonly seq: number; readonly term: Term }[] = [];

  constructor({ term, vote }: { readonly term: Term; readonly vote: NodeId }) {
    this.#term = term;
    this.#vote = vote;
    this.#durableTerm = term;
  }

  get term(): Term {
    return this.#term;
  }
  get vote(): NodeId {
    return this.#vote;
  }
  get isChanged(): boolean {
    return this.#isChanged;
  }
  get durableTerm(): Term {
    return this.#durableTerm;
  }

  /** Enters a later term, in which this node has not voted yet. */
  enter(term: Term): void {
    invariant(term >= this.#term && Number.isSafeInteger(term), 'the term never falls', { from: this.#term, to: term });
    if (term === this.#term) return;
    this.#term = term;
    this.#vote = 0;
    this.#isChanged = true;
  }

  voteFor(id: NodeId): void {
    invariant(this.#vote === 0 || this.#vote === id, 'a vote is given once in a term', {
      term: this.#term,
      vote: this.#vote,
      id,
    });
    this.#isChanged ||= this.#vote !== id;
    this.#vote = id;
  }

  /** Notes that the ballot is written with the batch `seq`. */
  written(seq: number): void {
    this.#isChanged = false;
    this.#written.push({ seq, term: this.#term });
  }

  persisted(seq: number): void {
    for (let next = this.#written[0]; next !== undefined && next.seq <= seq; next = this.#written[0]) {
      this.#durableTerm = next.term;
      this.#written.shift();
    }
  }
}
