import { encodeMessage, type Message, type NodeId } from '@transitd/raft-core';
import { Numbering } from './numbering.ts';
import { type Renaming, renamed, renamedMessage } from './renaming.ts';
import { SmallNode } from './small-node.ts';

/** An event at one node. */
export type Input =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'pass' }
  | { readonly kind: 'propose'; readonly data: Uint8Array };

/** The part of a node that its peers and the checks see. */
export type NodeView = Pick<SmallNode, 'id' | 'status' | 'entries'>;

interface LocalState {
  /** The numbers of all inputs of the node up to this state. */
  readonly inputs: readonly number[];
  readonly view: NodeView;
  /** By the number of the input. */
  readonly steps: Map<number, LocalStep>;
}

export interface LocalStep {
  readonly next: number;
  /** The messages sent in this step, each as the number of the input that delivers it. */
  readonly sent: readonly number[];
}

/**
 * The states of single cores, by number. A core's behavior depends only on its own inputs, so a cluster has few such states, in whatever
 * order messages arrive. Each step is played once and looked up afterwards. It is played from the core's beginning, because a core cannot
 * be copied.
 */
export class LocalStates {
  readonly inputs = new Numbering<Input>((input) => {
    return input.kind === 'message'
      ? encodeMessage(input.message).join()
      : `${input.kind} ${input.kind === 'pass' ? '' : input.data}`;
  });
  readonly #voters: readonly NodeId[];
  readonly #states: LocalState[] = [];
  readonly #byPrint = new Map<string, number>();

  constructor(voters: readonly NodeId[]) {
    this.#voters = voters;
  }

  first(id: NodeId): number {
    return this.#played(id, []);
  }

  view(state: number): NodeView {
    return this.#at(state).view;
  }

  /** The position of the node that a message is for. */
  placeOf(input: number): number {
    const found = this.inputs.at(input);
    if (found.kind !== 'message') throw new RangeError(`${found.kind} is not addressed to a node`);
    return found.message.to - 1;
  }

  step(state: number, input: number): LocalStep {
    const { inputs, steps, view } = this.#at(state);
    const known = steps.get(input);
    if (known !== undefined) return known;
    const node = this.#play(view.id, inputs);
    const sent = take(node, this.inputs.at(input)).map((message) => this.inputs.number({ kind: 'message', message }));
    const step = { next: this.#number(node, [...inputs, input]), sent };
    steps.set(input, step);
    return step;
  }

  /** Returns the number of the renamed state: the state of the node with the new name after the same inputs under their new names. */
  renamed(state: number, renaming: Renaming): number {
    const { inputs, view } = this.#at(state);
    return this.#played(
      renamed(view.id, renaming),
      inputs.map((input) => this.inputRenamed(input, renaming)),
    );
  }

  inputRenamed(number: number, renaming: Renaming): number {
    const input = this.inputs.at(number);
    if (input.kind !== 'message') return number;
    return this.inputs.number({ kind: 'message', message: renamedMessage(input.message, renaming) });
  }

  #played(id: NodeId, inputs: readonly number[]): number {
    return this.#number(this.#play(id, inputs), inputs);
  }

  #play(id: NodeId, inputs: readonly number[]): SmallNode {
    const node = new SmallNode(id, this.#voters);
    for (const input of inputs) take(node, this.inputs.at(input));
    return node;
  }

  #number(node: SmallNode, inputs: readonly number[]): number {
    const { print } = node;
    const known = this.#byPrint.get(print);
    if (known !== undefined) return known;
    const { id, status, entries } = node;
    this.#byPrint.set(print, this.#states.length);
    this.#states.push({ inputs, view: { id, status, entries }, steps: new Map() });
    return this.#states.length - 1;
  }

  #at(state: number): LocalState {
    const found = this.#states[state];
    if (found === undefined) throw new RangeError(`there is no state ${state}`);
    return found;
  }
}

export function take(node: SmallNode, input: Input): readonly Message[] {
  if (input.kind === 'message') return node.receive(input.message);
  return input.kind === 'pass' ? node.pass() : node.propose(input.data);
}
