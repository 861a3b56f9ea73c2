import type { LogIndex, NodeId, Term } from '@transitd/raft-core';
import { holds } from '../cluster/checks/violation.ts';
import type { NodeView } from './local-states.ts';

/** The memory of the rules. */
export interface History {
  readonly leaders: ReadonlyMap<Term, NodeId>;
  /** `by`: term of the leader that committed it, which may be later than the entry's own term (§5.4.2). */
  readonly committed: readonly { readonly term: Term; readonly by: Term; readonly text: string }[];
}

/** The rules of Raft's figure 3. @throws Violation */
export function check(history: History, nodes: readonly NodeView[]): History {
  const leaders = new Map(history.leaders);
  const committed = [...history.committed];
  for (const { id, status, entries } of nodes) {
    if (status.role === 'leader') {
      const { term } = status;
      const leader = leaders.get(term) ?? id;
      leaders.set(term, leader);
      holds('a term has one leader', leader === id, () => ({ term, leader, id }));
      for (const [position, entry] of history.committed.entries()) {
        const isThere = entry.by >= term || entries[position]?.term === entry.term;
        holds('a leader has every committed entry', isThere, () => ({ id, term, index: position + 1 }));
      }
    }
    for (let index = 1; index <= status.commitIndex; index++) {
      const entry = commits(nodes, { id, index }, committed[index - 1]?.text);
      // A leader commits earlier entries only together with an entry of its own term, which is the last one that it commits at that moment.
      committed[index - 1] ??= { ...entry, by: entries[status.commitIndex - 1]?.term ?? 0 };
    }
  }
  for (const one of nodes) for (const other of nodes) if (other.id > one.id) match(one, other);
  return { leaders, committed };
}

function commits(
  nodes: readonly NodeView[],
  { id, index }: { readonly id: NodeId; readonly index: LogIndex },
  known: string | undefined,
): Omit<History['committed'][number], 'by'> {
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
