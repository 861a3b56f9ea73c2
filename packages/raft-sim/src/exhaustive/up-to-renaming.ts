import type { System } from './explore.ts';
import type { State } from './level.ts';
import { type Renaming, renamed, renamings } from './renaming.ts';
import type { SmallCluster } from './small-cluster.ts';
import { compare, HISTORY, insert, NODES, numberAt, PASSES, PROPOSALS } from './small-state.ts';

/**
 * A small cluster in which states that differ only by the names of the nodes count as one: the least of them represents all.
 *
 * Nothing is lost if renaming a state and taking a step gives the same as taking the step and renaming. A core only compares ids for
 * equality, with two exceptions. First, a leader numbers the sessions of its peers in the order of their ids; renamed messages get the
 * renamed numbers. Second, it prefers low ids when it transfers leadership; no input here causes a transfer. Random timeouts are drawn
 * from the same seed on all nodes. The rules treat every node alike. So a failure follows from a state exactly if it follows from each of
 * its renamings.
 */
export class UpToRenaming implements System {
  readonly initial: State;
  readonly #cluster: SmallCluster;
  readonly #wire: number;
  readonly #renamings: readonly Renaming[];
  readonly #locals: Images;
  readonly #histories: Images;
  readonly #inputs: Images;

  constructor(cluster: SmallCluster) {
    this.#cluster = cluster;
    this.#wire = NODES + cluster.nodes;
    this.#renamings = renamings(cluster.nodes);
    const { locals } = cluster;
    this.#locals = new Images(this.#renamings, (number, renaming) => locals.renamed(number, renaming));
    this.#histories = new Images(this.#renamings, (number, renaming) => cluster.historyRenamed(number, renaming));
    this.#inputs = new Images(this.#renamings, (number, renaming) => locals.inputRenamed(number, renaming));
    this.initial = this.least(cluster.initial);
  }

  transitions(state: State): readonly number[] {
    return this.#cluster.transitions(state);
  }

  take(state: State, transition: number): State {
    return this.least(this.#cluster.take(state, transition));
  }

  /** Returns the least of all renamings of the state. */
  least(state: State): State {
    let least = state;
    for (let by = 1; by < this.#renamings.length; by++) {
      const image = this.#nodesRenamed(state, by);
      if (compare(image, least) > 0) continue;
      this.#addMessages(image, state, by);
      if (compare(image, least) < 0) least = image;
    }
    return least;
  }

  /** Returns every renaming of the state. */
  renamings(state: State): State[] {
    return this.#renamings.map((_, by) => {
      const image = this.#nodesRenamed(state, by);
      this.#addMessages(image, state, by);
      return image;
    });
  }

  /**
   * Converts choices, between which the names change, to transitions under one fixed set of names that lead through the same states.
   */
  inOneName(choices: readonly number[]): number[] {
    let [state, least] = [this.#cluster.initial, this.initial];
    return choices.map((choice) => {
      const goal = this.#reached(least, choice);
      const same = (transition: number): boolean => String(this.#reached(state, transition)) === String(goal);
      const transition = this.#cluster.transitions(state).find(same);
      if (transition === undefined) throw new RangeError(`there is no transition like ${choice}`);
      if (goal !== undefined) [state, least] = [this.#cluster.take(state, transition), goal];
      return transition;
    });
  }

  /** Undefined where a rule is broken. */
  #reached(state: State, transition: number): State | undefined {
    try {
      return this.take(state, transition);
    } catch {
      return undefined;
    }
  }

  /** The state without its messages. */
  #nodesRenamed(state: State, by: number): number[] {
    const image = [this.#histories.of(numberAt(state, HISTORY), by), numberAt(state, PROPOSALS), numberAt(state, PASSES)];
    const names = this.#renamings[by] ?? [];
    for (let at = NODES; at < this.#wire; at++) image.push(0);
    for (let id = 1; id <= this.#cluster.nodes; id++) {
      image[NODES + renamed(id, names) - 1] = this.#locals.of(numberAt(state, NODES + id - 1), by);
    }
    return image;
  }

  #addMessages(image: number[], state: State, by: number): void {
    for (let at = this.#wire; at < state.length; at++) insert(image, this.#inputs.of(numberAt(state, at), by), this.#wire);
  }
}

/** For each number, its image under each renaming. */
class Images {
  readonly #renamings: readonly Renaming[];
  readonly #image: (number: number, renaming: Renaming) => number;
  readonly #known: (readonly number[])[] = [];

  constructor(all: readonly Renaming[], image: (number: number, renaming: Renaming) => number) {
    this.#renamings = all;
    this.#image = image;
  }

  /** @param by - the number of the renaming */
  of(number: number, by: number): number {
    const known = this.#known[number] ?? this.#renamings.map((renaming) => this.#image(number, renaming));
    this.#known[number] = known;
    return numberAt(known, by);
  }
}
