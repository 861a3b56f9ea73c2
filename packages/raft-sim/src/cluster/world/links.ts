import type { Member } from '../node/member.ts';
import type { Cluster } from './cluster.ts';

/** One direction between two nodes. */
export type Link = readonly [from: Member, to: Member];

export const both = (a: Member, b: Member): Link[] => [
  [a, b],
  [b, a],
];

/** Returns all links between nodes of different sides. */
export const between = (members: readonly Member[], sideOf: (member: Member) => number): Link[] =>
  members.flatMap((from) => members.filter((to) => sideOf(to) !== sideOf(from)).map((to): Link => [from, to]));

/** Cuts the links for this long. */
export function cut(cluster: Cluster, links: readonly Link[], durationMs: number): void {
  const { network, clock } = cluster;
  for (const [from, to] of links) network.cut(from.id, to.id);
  clock.after(durationMs, () => {
    for (const [from, to] of links) network.mend(from.id, to.id);
  });
}

/** Runs the rest of an action after a delay, unless all faults have ended by then. */
export function later(cluster: Cluster, delayMs: number, task: () => void): void {
  cluster.clock.after(delayMs, () => {
    if (!cluster.isHealed) task();
  });
}
