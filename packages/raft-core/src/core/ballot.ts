import { invariant } from '../invariant.ts';
import type { NodeId, Term } from '../types.ts';

/** A node's term and vote (Raft figure 2), which it must never forget, and how far the disk has come with them. */
export class Ballot {
  #term: Term;
  #vote: NodeId;
  /** Since it was handed out to be written last. */
  #isChanged = false;
  /** The newest term on the disk. */
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

  /** In a later term nobody has this node's vote yet. */
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

  /** Handed out to be written with the batch `seq`. */
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
