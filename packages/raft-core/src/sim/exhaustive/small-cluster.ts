import type { LogIndex, Message, NodeId, Term } from '../../types.ts';
import { encodeMessage } from '../../wire/message.ts';
import { holds } from '../cluster/violation.ts';
import type { Explored } from './explore.ts';
import { SmallNode } from './small-node.ts';

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

type Choice = { readonly deliver: number } | { readonly pass: SmallNode } | { readonly propose: SmallNode };

/** Past an election timeout in two steps; a leader lives through one of them without an answer, and speaks in it. */
const PASS_MS = 1_000;
const LEADER_PASS_MS = 500;

/**
 * A few cores and the messages between them, in a hand that decides what comes next: any message on its way, a while for any
 * node's clock, a proposal to any leader. What is never delivered is lost. The rules are those of Raft, figure 3.
 */
export class SmallCluster implements Explored {
  readonly #options: SmallClusterOptions;
  readonly #nodes: readonly SmallNode[];
  #wire: readonly { readonly message: Message; readonly text: string }[] = [];
  #proposals = 0;
  #passes = 0;
  readonly #leaders = new Map<Term, NodeId>();
  readonly #committed: { readonly term: Term; readonly text: string }[] = [];

  constructor(options: SmallClusterOptions) {
    this.#options = options;
    const ids = Array.from({ length: options.nodes }, (_, i) => i + 1);
    this.#nodes = ids.map((id) => new SmallNode(id, ids));
    if (options.isLed) this.#elect();
  }

  get choices(): number {
    return this.#choices().length;
  }

  get print(): string {
    return [this.#proposals, this.#passes, ...this.#nodes.map(({ print }) => print), ...this.#wire.map(({ text }) => text)].join(
      '|',
    );
  }

  choose(choice: number): void {
    const chosen = this.#choices()[choice];
    if (chosen === undefined) throw new RangeError(`there is no choice ${choice}`);
    if ('deliver' in chosen) this.#deliver(chosen.deliver);
    else if ('pass' in chosen) {
      this.#passes += 1;
      this.#post(chosen.pass.pass(chosen.pass.status.role === 'leader' ? LEADER_PASS_MS : PASS_MS));
    } else {
      this.#proposals += 1;
      this.#post(chosen.propose.propose(Uint8Array.of(this.#proposals)));
    }
    this.#check();
  }

  #choices(): readonly Choice[] {
    const { termMax, proposalsMax, passesMax } = this.#options;
    const distinct = this.#wire.flatMap(({ text }, deliver) => (this.#wire[deliver - 1]?.text === text ? [] : [{ deliver }]));
    const isTimely = ({ status: { role, term } }: SmallNode): boolean => role === 'leader' || term < termMax;
    const mayPass = this.#passes < passesMax ? this.#nodes.filter(isTimely) : [];
    const leaders = this.#proposals < proposalsMax ? this.#nodes.filter(({ status }) => status.role === 'leader') : [];
    return [...distinct, ...mayPass.map((pass) => ({ pass })), ...leaders.map((propose) => ({ propose }))];
  }

  #elect(): void {
    const [first] = this.#nodes;
    while (first?.status.role === 'follower') this.#post(first.pass(PASS_MS));
    while (this.#wire.length > 0) this.#deliver(0);
    this.#check();
  }

  #deliver(position: number): void {
    const delivered = this.#wire[position];
    if (delivered === undefined) return;
    this.#wire = this.#wire.toSpliced(position, 1);
    const receiver = this.#nodes[delivered.message.to - 1];
    if (receiver !== undefined) this.#post(receiver.receive(delivered.message));
  }

  /** Sorted, so that equal sets of messages are equal. */
  #post(messages: readonly Message[]): void {
    const posted = messages.map((message) => ({ message, text: encodeMessage(message).join() }));
    this.#wire = [...this.#wire, ...posted].sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  }

  #check(): void {
    for (const node of this.#nodes) {
      const { id, status } = node;
      if (status.role === 'leader') this.#leads(node);
      for (let index = 1; index <= status.commitIndex; index++) this.#commits(node, index);
      for (const other of this.#nodes) if (other.id > id) this.#matches(node, other);
    }
  }

  #leads({ id, status: { term }, entries }: SmallNode): void {
    const leader = this.#leaders.get(term) ?? id;
    this.#leaders.set(term, leader);
    holds('a term has one leader', leader === id, () => ({ term, leader, id }));
    for (const [position, committed] of this.#committed.entries()) {
      const isThere = committed.term >= term || entries[position]?.term === committed.term;
      holds('a leader has every committed entry', isThere, () => ({ id, term, index: position + 1 }));
    }
  }

  #commits({ id, entries }: SmallNode, index: LogIndex): void {
    const entry = entries[index - 1];
    const text = `${entry?.term} ${entry?.data.join()}`;
    const known = this.#committed[index - 1];
    holds('a committed entry is the same everywhere', known === undefined || known.text === text, () => ({
      id,
      index,
      text,
      known,
    }));
    if (known !== undefined || entry === undefined) return;
    this.#committed[index - 1] = { term: entry.term, text };
    const stored = this.#nodes.filter((node) => node.termAt(index) === entry.term).length;
    holds('a committed entry is durable on a quorum', 2 * stored > this.#nodes.length, () => ({ id, index, stored }));
  }

  #matches(one: SmallNode, other: SmallNode): void {
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
}
