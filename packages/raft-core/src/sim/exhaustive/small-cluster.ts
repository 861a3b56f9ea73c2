import type { LogIndex, Message, NodeId, Term } from '../../types.ts';
import { encodeMessage } from '../../wire/message.ts';
import { holds } from '../cluster/violation.ts';
import type { System } from './explore.ts';
import { type Input, LocalStates, type NodeView } from './local-states.ts';

export interface SmallClusterOptions {
  readonly nodes: number;
  /** No time passes for a node that could begin a later term. */
  readonly termMax: Term;
  /** Entries of clients. */
  readonly proposalsMax: number;
  /** How often a node's clock goes on. */
  readonly passesMax: number;
  /** Begins with node 1 elected, which saves the depth that an election takes. */
  readonly isLed: boolean;
}

/** The cluster at one moment; everything is a number that something else is known by. */
interface Moment {
  readonly proposals: number;
  readonly passes: number;
  readonly past: number;
  /** The local state of each node, by id. */
  readonly nodes: readonly number[];
  /** Messages on their way, ascending. */
  readonly wire: readonly number[];
}

/** What the rules remember. */
interface Past {
  readonly leaders: ReadonlyMap<Term, NodeId>;
  readonly committed: readonly { readonly term: Term; readonly text: string }[];
}

/** Past an election timeout in two steps; a leader lives through one of them without an answer, and speaks in it. */
const PASS_MS = 1_000;
const LEADER_PASS_MS = 500;

/**
 * A few cores and the messages between them, in a hand that decides what comes next: any message on its way, a while for any
 * node's clock, a proposal to any leader. What is never delivered is lost. The rules are those of Raft, figure 3.
 */
export class SmallCluster implements System {
  readonly begin: string;
  readonly #options: SmallClusterOptions;
  readonly #locals: readonly LocalStates[];
  readonly #messages = new Numbered<Message>((message) => encodeMessage(message).join());
  readonly #pasts = new Numbered<Past>(({ leaders, committed }) => JSON.stringify([[...leaders], committed]));
  /** What a past becomes by what the nodes are now: the rules were checked there. */
  readonly #checked = new Map<string, number>();

  constructor(options: SmallClusterOptions) {
    this.#options = options;
    const ids = Array.from({ length: options.nodes }, (_, i) => i + 1);
    this.#locals = ids.map((id) => new LocalStates(id, ids));
    const nodes = this.#locals.map(({ first }) => first);
    const past = this.#pasts.number({ leaders: new Map(), committed: [] });
    const fresh: Moment = { proposals: 0, passes: 0, past, nodes, wire: [] };
    this.begin = encode(options.isLed ? this.#elected(fresh) : fresh);
  }

  ways(state: string): readonly (() => string)[] {
    const { termMax, proposalsMax, passesMax, nodes: count } = this.#options;
    const moment = decode(state, count);
    const { wire, passes, proposals } = moment;
    const views = moment.nodes.map((_, at) => this.#view(moment, at));
    const distinct = wire.filter((number, at) => wire[at - 1] !== number);
    const isTimely = ({ status: { role, term } }: NodeView): boolean => role === 'leader' || term < termMax;
    const mayPass = passes < passesMax ? views.filter(isTimely) : [];
    const leaders = proposals < proposalsMax ? views.filter(({ status }) => status.role === 'leader') : [];
    return [
      ...distinct.map((number) => () => this.#delivered(moment, number)),
      ...mayPass.map(
        ({ id }) =>
          () =>
            this.#passed({ ...moment, passes: passes + 1 }, id - 1),
      ),
      ...leaders.map(
        ({ id }) =>
          () =>
            this.#proposed({ ...moment, proposals: proposals + 1 }, id - 1),
      ),
    ].map((way) => () => encode(way()));
  }

  #elected(fresh: Moment): Moment {
    let moment = fresh;
    while (this.#view(moment, 0).status.role === 'follower') moment = this.#passed(moment, 0);
    for (let [number] = moment.wire; number !== undefined; [number] = moment.wire) {
      const after = this.#delivered(moment, number);
      moment = after === moment ? { ...moment, wire: moment.wire.slice(1) } : after;
    }
    return moment;
  }

  /** The same moment where nothing changes by it and nothing is answered: the message might as well have been lost. */
  #delivered(moment: Moment, number: number): Moment {
    const { nodes, wire } = moment;
    const message = this.#messages.at(number);
    const to = message.to - 1;
    const step = this.#step(nodes, to, `m${number}`, { kind: 'message', message });
    if (step.next === nodes[to] && step.sent.length === 0) return moment;
    return this.#after({ ...moment, wire: wire.toSpliced(wire.indexOf(number), 1) }, to, step);
  }

  #passed(moment: Moment, at: number): Moment {
    const ms = this.#view(moment, at).status.role === 'leader' ? LEADER_PASS_MS : PASS_MS;
    return this.#after(moment, at, this.#step(moment.nodes, at, 'pass', { kind: 'pass', ms }));
  }

  #proposed(moment: Moment, at: number): Moment {
    const { proposals, nodes } = moment;
    const input: Input = { kind: 'propose', data: Uint8Array.of(proposals) };
    return this.#after(moment, at, this.#step(nodes, at, `p${proposals}`, input));
  }

  #step(nodes: readonly number[], at: number, key: string, input: Input): ReturnType<LocalStates['step']> {
    return this.#local(at).step(nodes[at] ?? 0, key, input);
  }

  #after(moment: Moment, at: number, { next, sent }: ReturnType<LocalStates['step']>): Moment {
    const posted = sent.map((message) => this.#messages.number(message));
    const wire = posted.length === 0 ? moment.wire : [...moment.wire, ...posted].sort((a, b) => a - b);
    const nodes = moment.nodes.with(at, next);
    return { ...moment, nodes, wire, past: this.#past(moment.past, nodes) };
  }

  #past(before: number, nodes: readonly number[]): number {
    const key = [before, ...nodes].join();
    const known = this.#checked.get(key);
    if (known !== undefined) return known;
    const views = nodes.map((state, at) => this.#local(at).view(state));
    const past = this.#pasts.number(check(this.#pasts.at(before), views));
    this.#checked.set(key, past);
    return past;
  }

  #view({ nodes }: Moment, at: number): NodeView {
    return this.#local(at).view(nodes[at] ?? 0);
  }

  #local(at: number): LocalStates {
    const local = this.#locals[at];
    if (local === undefined) throw new RangeError(`there is no node ${at + 1}`);
    return local;
  }
}

/** Things by number, equal ones by the same. */
class Numbered<Thing> {
  readonly #text: (thing: Thing) => string;
  readonly #numbers = new Map<string, number>();
  readonly #things: Thing[] = [];

  constructor(text: (thing: Thing) => string) {
    this.#text = text;
  }

  number(thing: Thing): number {
    const text = this.#text(thing);
    const known = this.#numbers.get(text) ?? this.#things.length;
    if (known === this.#things.length) {
      this.#numbers.set(text, known);
      this.#things.push(thing);
    }
    return known;
  }

  at(number: number): Thing {
    const thing = this.#things[number];
    if (thing === undefined) throw new RangeError(`there is nothing under ${number}`);
    return thing;
  }
}

/** A number a character: memory is what ends an exploration. */
function encode({ proposals, passes, past, nodes, wire }: Moment): string {
  const numbers = [proposals, passes, past, ...nodes, ...wire];
  if (numbers.some((number) => number > 0xffff)) throw new RangeError('there are too many states of one core, or messages');
  return String.fromCharCode(...numbers);
}

function decode(state: string, nodes: number): Moment {
  const numbers = Array.from({ length: state.length }, (_, at) => state.charCodeAt(at));
  const [proposals = 0, passes = 0, past = 0, ...rest] = numbers;
  return { proposals, passes, past, nodes: rest.slice(0, nodes), wire: rest.slice(nodes) };
}

/** The rules of Raft's figure 3. @throws Violation */
function check(past: Past, nodes: readonly NodeView[]): Past {
  const leaders = new Map(past.leaders);
  const committed = [...past.committed];
  for (const { id, status, entries } of nodes) {
    if (status.role === 'leader') {
      const { term } = status;
      const leader = leaders.get(term) ?? id;
      leaders.set(term, leader);
      holds('a term has one leader', leader === id, () => ({ term, leader, id }));
      for (const [position, entry] of past.committed.entries()) {
        const isThere = entry.term >= term || entries[position]?.term === entry.term;
        holds('a leader has every committed entry', isThere, () => ({ id, term, index: position + 1 }));
      }
    }
    for (let index = 1; index <= status.commitIndex; index++) {
      const entry = commits(nodes, { id, index }, committed[index - 1]?.text);
      committed[index - 1] ??= entry;
    }
  }
  for (const one of nodes) for (const other of nodes) if (other.id > one.id) match(one, other);
  return { leaders, committed };
}

function commits(
  nodes: readonly NodeView[],
  { id, index }: { readonly id: NodeId; readonly index: LogIndex },
  known: string | undefined,
): Past['committed'][number] {
  const entry = nodes[id - 1]?.entries[index - 1];
  const text = `${entry?.term} ${entry?.data.join()}`;
  const isSame = entry !== undefined && (known === undefined || known === text);
  holds('a committed entry is the same everywhere', isSame, () => ({ id, index, text, known }));
  const stored = nodes.filter(({ entries }) => entries[index - 1]?.term === entry?.term).length;
  const isStored = known !== undefined || 2 * stored > nodes.length;
  holds('a committed entry is durable on a quorum', isStored, () => ({ id, index, stored }));
  return { term: entry?.term ?? 0, text };
}

function match(one: NodeView, other: NodeView): void {
  let agree = true;
  for (let index = Math.min(one.entries.length, other.entries.length); index > 0; index--) {
    const [a, b] = [one.entries[index - 1], other.entries[index - 1]];
    const same = a?.term === b?.term && a?.data.join() === b?.data.join();
    if (a?.term === b?.term) agree = same;
    holds('logs match where index and term agree', agree || a?.term !== b?.term, () => ({
      one: one.id,
      other: other.id,
      index,
    }));
  }
}
