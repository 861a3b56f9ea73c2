import type { Message, NodeId } from '../../types.ts';
import { SmallNode } from './small-node.ts';

/** What can happen to one node. */
export type Input =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'propose'; readonly data: Uint8Array };

/** What its peers and the checks see of a node. */
export type NodeView = Pick<SmallNode, 'id' | 'status' | 'entries'>;

interface LocalState {
  /** All that has happened to the node until then. */
  readonly inputs: readonly Input[];
  readonly view: NodeView;
  /** By the key of the input. */
  readonly steps: Map<string, LocalStep>;
}

export interface LocalStep {
  readonly next: number;
  readonly sent: readonly Message[];
}

/**
 * The states of one core, by number. What a core does depends on what happened to it alone, so a cluster has few of them however many
 * orders there are: each step is played once, from the core's beginning since a core cannot be copied, and looked up from then on.
 */
export class LocalStates {
  readonly #begin: () => SmallNode;
  readonly #states: LocalState[] = [];
  readonly #byPrint = new Map<string, number>();
  /** The number of the first state. */
  readonly first: number;

  constructor(id: NodeId, voters: readonly NodeId[]) {
    this.#begin = () => new SmallNode(id, voters);
    this.first = this.#number(this.#begin(), []);
  }

  view(state: number): NodeView {
    return this.#at(state).view;
  }

  /** @param key - equal for equal inputs */
  step(state: number, key: string, input: Input): LocalStep {
    const { inputs, steps } = this.#at(state);
    const known = steps.get(key);
    if (known !== undefined) return known;
    const node = this.#begin();
    for (const each of inputs) take(node, each);
    const sent = take(node, input);
    const step = { next: this.#number(node, [...inputs, input]), sent };
    steps.set(key, step);
    return step;
  }

  #number(node: SmallNode, inputs: readonly Input[]): number {
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

function take(node: SmallNode, input: Input): readonly Message[] {
  if (input.kind === 'message') return node.receive(input.message);
  return input.kind === 'pass' ? node.pass(input.ms) : node.propose(input.data);
}
