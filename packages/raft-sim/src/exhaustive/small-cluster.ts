import type { Term } from '@transitd/raft-core';
import type { System } from './explore.ts';
import type { State } from './level.ts';
import { LocalStates, type NodeView } from './local-states.ts';
import { Numbering } from './numbering.ts';
import { type Renaming, renamed } from './renaming.ts';
import { check, type History } from './rules.ts';
import { HISTORY, insert, NODES, numberAt, PASSES, PROPOSALS } from './small-state.ts';

export interface SmallClusterOptions {
  readonly nodes: number;
  /** Highest term: time does not pass for a node that could start a later one. */
  readonly termMax: Term;
  /** Limit of client entries. */
  readonly proposalsMax: number;
  /** Limit of how often a node's clock advances. */
  readonly passesMax: number;
  /** Starts with node 1 elected, which saves the depth of an election. */
  readonly isLed: boolean;
}

/**
 * A few cores and the messages between them, under the explorer's control: it delivers any message under way, advances any node's clock, or
 * proposes to any leader. A message that is never delivered counts as lost. The rules are those of Raft, figure 3. A state is a sequence of
 * numbers that refer to tables; a transition is the number of an input and the position of the node that takes it.
 */
export class SmallCluster implements System {
  readonly initial: State;
  readonly nodes: number;
  readonly #options: SmallClusterOptions;
  readonly locals: LocalStates;
  readonly #histories = new Numbering<History>(({ leaders, committed }) => {
    return JSON.stringify([[...leaders].sort(([a], [b]) => a - b), committed]);
  });
  /** The checked states of the nodes, each with the number of the resulting history. */
  readonly #checked = new Map<number, number>();
  /** Numbers of sequences: a sequence is stored as its last element and the number of the sequence before that element. */
  readonly #rows = new Map<number, number>();
  /** The inputs that are not messages come first. */
  readonly #pass: number;
  readonly #proposals: readonly number[];
  readonly #wire: number;

  constructor(options: SmallClusterOptions) {
    const { nodes, proposalsMax } = options;
    this.#options = options;
    this.nodes = nodes;
    this.#wire = NODES + nodes;
    const ids = Array.from({ length: nodes }, (_, place) => place + 1);
    this.locals = new LocalStates(ids);
    const { inputs } = this.locals;
    this.#pass = inputs.number({ kind: 'pass' });
    this.#proposals = Array.from({ length: proposalsMax }, (_, each) => {
      return inputs.number({ kind: 'propose', data: Uint8Array.of(each) });
    });
    const history = this.#histories.number({ leaders: new Map(), committed: [] });
    const fresh = [history, 0, 0, ...ids.map((id) => this.locals.first(id))];
    this.initial = options.isLed ? this.#elected(fresh) : fresh;
  }

  transitions(state: State): readonly number[] {
    const { termMax, passesMax } = this.#options;
    const transitions: number[] = [];
    for (let at = this.#wire; at < state.length; at++) {
      const input = numberAt(state, at);
      if (at === this.#wire || input !== state[at - 1]) transitions.push(this.#delivery(input));
    }
    const mayPass = numberAt(state, PASSES) < passesMax;
    const proposal = this.#proposals[numberAt(state, PROPOSALS)];
    for (let place = 0; place < this.nodes; place++) {
      const { role, term } = this.#view(state, place).status;
      if (mayPass && (role === 'leader' || term < termMax)) transitions.push(this.#transition(this.#pass, place));
      if (proposal !== undefined && role === 'leader') transitions.push(this.#transition(proposal, place));
    }
    return transitions;
  }

  /**
   * Returns the state after a transition. It is the same state if a message changes nothing and is not answered: the message might as well
   * have been lost.
   */
  take(state: State, transition: number): State {
    const place = transition % this.nodes;
    const input = (transition - place) / this.nodes;
    const local = numberAt(state, NODES + place);
    const { next, sent } = this.locals.step(local, input);
    const isMessage = input > this.#proposals.length;
    if (isMessage && next === local && sent.length === 0) return state;
    const reached = [...state];
    reached[NODES + place] = next;
    if (isMessage) reached.splice(reached.indexOf(input, this.#wire), 1);
    else if (input === this.#pass) reached[PASSES] = numberAt(state, PASSES) + 1;
    else reached[PROPOSALS] = numberAt(state, PROPOSALS) + 1;
    for (const message of sent) insert(reached, message, this.#wire);
    reached[HISTORY] = this.#history(reached);
    return reached;
  }

  historyRenamed(number: number, renaming: Renaming): number {
    const { leaders, committed } = this.#histories.at(number);
    return this.#histories.number({
      leaders: new Map([...leaders].map(([term, id]) => [term, renamed(id, renaming)])),
      committed,
    });
  }

  /** Describes a transition in words. */
  describe(transition: number): string {
    const place = transition % this.nodes;
    const input = this.locals.inputs.at((transition - place) / this.nodes);
    if (input.kind !== 'message') return `${input.kind} at ${place + 1}${input.kind === 'pass' ? '' : `: ${input.data}`}`;
    const { type, from, to, term, clusterId: _, session: __, ...rest } = input.message;
    return `${type} from ${from} to ${to}, term ${term}: ${JSON.stringify(rest)}`;
  }

  #elected(fresh: State): State {
    let state = fresh;
    while (this.#view(state, 0).status.role === 'follower') state = this.take(state, this.#transition(this.#pass, 0));
    while (state.length > this.#wire) {
      const after = this.take(state, this.#delivery(numberAt(state, this.#wire)));
      state = after === state ? state.toSpliced(this.#wire, 1) : after;
    }
    return state.with(PASSES, 0);
  }

  #history(state: State): number {
    let row = numberAt(state, HISTORY);
    for (let at = NODES; at < this.#wire; at++) row = this.#row(row, numberAt(state, at));
    const known = this.#checked.get(row);
    if (known !== undefined) return known;
    const views = Array.from({ length: this.nodes }, (_, place) => this.#view(state, place));
    const history = this.#histories.number(check(this.#histories.at(numberAt(state, HISTORY)), views));
    this.#checked.set(row, history);
    return history;
  }

  #row(before: number, last: number): number {
    const key = before * 2 ** 20 + last;
    const row = this.#rows.get(key) ?? this.#rows.size;
    if (row === this.#rows.size) this.#rows.set(key, row);
    return row;
  }

  #delivery(input: number): number {
    return this.#transition(input, this.locals.placeOf(input));
  }

  #transition(input: number, place: number): number {
    return input * this.nodes + place;
  }

  #view(state: State, place: number): NodeView {
    return this.locals.view(numberAt(state, NODES + place));
  }
}
