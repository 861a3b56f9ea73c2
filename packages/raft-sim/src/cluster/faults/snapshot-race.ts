import type { Member } from '../node/member.ts';
import type { Cluster } from '../world/cluster.ts';
import { both, cut, type Link, later } from '../world/links.ts';
import { inTurn, type Step } from './steps.ts';

/** How long the scenario waits for each step, and how long its cuts last. */
const RACE_MS = 4_000;

/**
 * Lets the log grow past a snapshot during its stream. One node lags so far that the leader's log no longer reaches back to it, but another
 * node's log does. While it receives a snapshot, the other nodes lose the leader, which has just committed more than they know of. The
 * next leader sends the lagging node the entries in the snapshot and later ones from its log. At first it can commit the later ones only
 * together with that node.
 */
export function raceSnapshot(cluster: Cluster, behind: Member | undefined): void {
  const { members, clients, network, clock, leader } = cluster;
  if (leader === undefined || behind === undefined || behind === leader) return;
  const others = members.filter((member) => member !== leader && member !== behind);
  const links = members.flatMap((member) => both(member, behind));
  const isBehind = (): boolean => statusOf(leader, 'baseIndex') > statusOf(behind, 'lastIndex');
  const fallsBehind: Step = {
    once: isBehind,
    act: () => {
      behind.streaming = { untilMs: clock.now() + 2 * RACE_MS, pieceMs: 1_000 };
      for (const [from, to] of links) network.mend(from.id, to.id);
    },
  };
  const fetches: Step = { once: () => behind.incarnation?.snapshots.isFetching === true, act: () => clients.burst(8) };
  const losesItsLeader: Step = {
    once: () => others.every((other) => statusOf(other, 'commitIndex') < statusOf(leader, 'commitIndex')),
    act: () => {
      const silence = members.map((member): Link => [leader, member]);
      cut(cluster, silence, RACE_MS);
    },
  };
  const hasTheNext: Step = {
    once: () => cluster.leader !== undefined && cluster.leader !== leader,
    act: () => {
      const next = cluster.leader ?? leader;
      behind.streaming = { ...behind.streaming, pieceMs: 150 };
      const answers = others.map((other): Link => [other, next]);
      // Shorter than the time after which a leader without a quorum steps down.
      cut(cluster, answers, 900);
    },
  };
  cut(cluster, links, RACE_MS);
  for (let atMs = 0; atMs < RACE_MS; atMs += 200) later(cluster, atMs, () => isBehind() || clients.burst(3));
  inTurn(cluster, [fallsBehind, fetches, losesItsLeader, hasTheNext], RACE_MS);
}

const statusOf = ({ observed: { status } }: Member, field: 'baseIndex' | 'lastIndex' | 'commitIndex'): number =>
  status?.[field] ?? 0;
