import type { LogIndex, NodeId, Status, Term } from '@transitd/raft-core';
import type { ObservedNode } from './observed-node.ts';
import { isQuorum } from './quorums.ts';
import { holds } from './violation.ts';

interface Committed {
  readonly term: Term;
  readonly print: number;
  /** Term of the leader that committed the entry; may be later than the entry's own term (§5.4.2). */
  readonly by: Term;
}

/**
 * The rules about committed entries (Raft figure 3, §5.4.2): an entry that was committed once stays committed, on every node and in every
 * later leader.
 */
export class CommitRules {
  readonly #nodes: ReadonlyMap<NodeId, ObservedNode>;
  readonly #committed: Committed[] = [];
  #commitIndex: LogIndex = 0;
  /** The highest commit index in a leader's messages, and that leader's term. */
  #announced: { readonly index: LogIndex; readonly by: Term } = { index: 0, by: 0 };

  constructor(nodes: ReadonlyMap<NodeId, ObservedNode>) {
    this.#nodes = nodes;
  }

  /** Highest index known to be committed on any node. */
  get commitIndex(): LogIndex {
    return this.#commitIndex;
  }

  termAt(index: LogIndex): Term | undefined {
    return this.#committed[index]?.term;
  }

  /**
   * Leader completeness (figure 3): entries committed in earlier terms are in the log of every later leader. An entry of an early term
   * may be committed in a late term. A leader of a term between the two, whose votes arrived late, may lack that entry.
   */
  checkCompleteness({ id, shadow }: ObservedNode, term: Term): void {
    for (let index = Math.max(1, shadow.baseIndex); index <= this.#commitIndex; index++) {
      const committed = this.#committed[index];
      if (committed === undefined || committed.by >= term) continue;
      const found = shadow.termAt(index);
      holds('a leader has every committed entry', found === committed.term, () => ({
        id,
        term,
        index,
        found,
        expected: committed.term,
      }));
    }
  }

  /**
   * Checks the commit index in a message of a leader. Its turn may stall then, so that the receiver is checked first. The leader may have
   * committed more than it announces, up to an entry of its own term.
   */
  announced(node: ObservedNode, { term, commit }: { readonly term: Term; readonly commit: LogIndex }): void {
    if (commit <= Math.max(this.#commitIndex, this.#announced.index)) return;
    const { id, shadow, status } = node;
    let index = shadow.lastIndex;
    while (index >= commit && !(shadow.termAt(index) === term && this.#isDurable(node, index, status))) index -= 1;
    holds('a leader announces only what it may commit', index >= commit, () => ({ id, term, commit, last: shadow.lastIndex }));
    this.#announced = { index: commit, by: term };
  }

  /** Checks the entries that this node has committed since the last check. */
  check(node: ObservedNode, status: Status, before: Status | undefined): void {
    const { id, shadow } = node;
    const { commitIndex } = status;
    for (let index = Math.max(node.commitChecked, shadow.baseIndex) + 1; index <= commitIndex; index++) {
      const term = shadow.termAt(index);
      const print = shadow.printAt(index);
      holds('a node commits only entries that it has', print !== undefined && term > 0, () => ({
        id,
        index,
        last: shadow.lastIndex,
      }));
      const known = this.#committed[index];
      // A leader commits through an entry of its own term: the last of the entries that it commits at once.
      const by = commitIndex <= this.#announced.index ? this.#announced.by : shadow.termAt(commitIndex);
      if (known === undefined) this.#committed[index] = { term, print: print ?? 0, by };
      const same = known === undefined || (known.term === term && known.print === print);
      holds('a committed entry is the same everywhere', same, () => ({ id, index, term, known }));
    }
    node.commitChecked = commitIndex;
    if (commitIndex <= this.#commitIndex) return;
    this.#firstCommit(node, status, before);
    this.#commitIndex = commitIndex;
  }

  #firstCommit(node: ObservedNode, { commitIndex, role, term: termNow }: Status, before: Status | undefined): void {
    const { id, shadow } = node;
    const leads = role === 'leader' || before?.role === 'leader';
    // The leader that announced it has not ended its turn yet, and is checked then.
    if (!leads && commitIndex <= this.#announced.index) return;
    holds('a leader is the first to commit an entry', leads, () => ({ id, commitIndex, role }));
    const term = shadow.termAt(commitIndex);
    const own = term === termNow || term === before?.term;
    holds('a leader commits through an entry of its own term', own, () => ({ id, commitIndex, term, termNow }));
    holds('a committed entry is durable on a quorum', this.#isDurable(node, commitIndex, before), () => ({
      id,
      commitIndex,
      term,
      confs: shadow.confs.slice(-2).map(({ index, conf }) => [index, conf.voters, conf.votersOutgoing]),
      stored: [...this.#nodes.values()].filter((other) => other.stored(commitIndex, term)).map((other) => other.id),
    }));
  }

  /** Returns whether a quorum has stored the entry of this node's log. */
  #isDurable({ shadow }: ObservedNode, index: LogIndex, before: Status | undefined): boolean {
    const term = shadow.termAt(index);
    const stored = (member: NodeId): boolean => this.#nodes.get(member)?.stored(index, term) ?? false;
    // One event may commit under one configuration and then append the next one.
    const appendedNow = (shadow.confs.at(-1)?.index ?? 0) > (before?.lastIndex ?? Number.POSITIVE_INFINITY);
    return shadow.confs.slice(appendedNow ? -2 : -1).some(({ conf }) => isQuorum(conf, stored));
  }
}
