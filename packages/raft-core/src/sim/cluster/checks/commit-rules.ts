import type { Status } from '../../../core/contract/raft-core.ts';
import type { LogIndex, NodeId, Term } from '../../../types.ts';
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
      if (known === undefined) this.#committed[index] = { term, print: print ?? 0, by: shadow.termAt(commitIndex) };
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
    holds('a leader is the first to commit an entry', leads, () => ({ id, commitIndex, role }));
    const term = shadow.termAt(commitIndex);
    const own = term === termNow || term === before?.term;
    holds('a leader commits through an entry of its own term', own, () => ({ id, commitIndex, term, termNow }));
    const stored = (member: NodeId): boolean => this.#nodes.get(member)?.stored(commitIndex, term) ?? false;
    // One event may commit under one configuration and then append the next one.
    const appendedNow = (shadow.confs.at(-1)?.index ?? 0) > (before?.lastIndex ?? Number.POSITIVE_INFINITY);
    const durable = shadow.confs.slice(appendedNow ? -2 : -1).some(({ conf }) => isQuorum(conf, stored));
    holds('a committed entry is durable on a quorum', durable, () => ({
      id,
      commitIndex,
      term,
      confs: shadow.confs.slice(-2).map(({ index, conf }) => [index, conf.voters, conf.votersOutgoing]),
      stored: [...this.#nodes.keys()].filter(stored),
    }));
  }
}
