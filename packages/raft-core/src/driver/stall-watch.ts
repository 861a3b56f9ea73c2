import type { Fitness } from '../types.ts';

/** A state store counts as hanging when one flush has taken this many election timeouts. */
const hangTimeouts = 3;

/**
 * Decides when a state store counts as hanging. Its node then takes no proposals, refuses reads that would wait for entries to be applied,
 * and transfers the leadership to a fit voter. Without a fit voter the node stays the leader and continues when the store works again.
 */
export class StallWatch {
  readonly #limitMs: number;
  #given: Fitness;
  #isStalled = false;

  constructor({ electionMs }: { readonly electionMs: number }, fitness: Fitness = 'fit') {
    this.#limitMs = hangTimeouts * electionMs;
    this.#given = fitness;
  }

  /** Whether the state store hangs, so that no proposals are taken. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  get fitness(): Fitness {
    return this.#isStalled && this.#given === 'fit' ? 'low' : this.#given;
  }

  /** Sets the node's fitness without regard to its state store. */
  setFitness(fitness: Fitness): void {
    this.#given = fitness;
  }

  /** Notes for how long the state's disk has held up applying, in ms. */
  note(stalledMs: number): void {
    this.#isStalled = stalledMs > this.#limitMs;
  }
}
