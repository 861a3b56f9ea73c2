import type { Member } from './members.ts';

/** A leader, and when its term began. */
export interface Reign {
  readonly term: number;
  readonly leader: string;
  readonly fromUtcMs: number;
}

/**
 * Merges the nodes' knowledge of past leaders: one leader for each term, from the time when the first node learned of it. Every node
 * knows only the terms since its own start.
 */
export function reignsOf(members: readonly Member[]): readonly Reign[] {
  const byTerm = new Map<number, Reign>();
  for (const { report } of members)
    for (const { term, leader, utcMs } of report?.leaders ?? []) {
      const known = byTerm.get(term);
      if (known === undefined || utcMs < known.fromUtcMs) byTerm.set(term, { term, leader, fromUtcMs: utcMs });
    }
  return [...byTerm.values()].sort((a, b) => a.term - b.term);
}
