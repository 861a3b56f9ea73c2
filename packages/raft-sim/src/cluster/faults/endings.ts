import type { Member } from '../node/member.ts';
import type { Cluster } from '../world/cluster.ts';
import { both, cut, later } from '../world/links.ts';

/** Maximum time until a node finds that a peer closed its connections and refuses new ones. */
const NOTICE_MS_MAX = 60;

/** Kills the leader's process; the system closes its connections and refuses new ones until it starts again. */
export function killLeader(cluster: Cluster, durationMs: number): void {
  const { leader, clock, coverage } = cluster;
  if (leader === undefined) return;
  coverage.met('leader killed, connections refused');
  cluster.kill(leader);
  for (const other of cluster.running) refuses(cluster, leader, other);
  clock.after(durationMs, () => cluster.start(leader));
}

/**
 * Lets the network reset the connections between a live leader and the others, or some of them, and refuse new ones in its name. The leader
 * continues to serve while its lease holds.
 */
export function resetLeader(cluster: Cluster, pick: number, durationMs: number): void {
  const { leader, coverage } = cluster;
  if (leader === undefined) return;
  coverage.met('live leader reset and refused');
  const isReset = (other: Member): boolean => pick % 4 !== 0 || ((pick >>> (8 + other.id)) & 1) === 1;
  for (const other of othersThan(cluster, leader)) if (isReset(other)) reset(cluster, leader, other, durationMs);
  readOften(cluster);
}

/** Resets the connections between the leader and one node only; the others still follow the leader. */
export function resetOneSide(cluster: Cluster, pick: number, durationMs: number): void {
  const { leader, coverage } = cluster;
  if (leader === undefined) return;
  const others = othersThan(cluster, leader);
  const other = others[pick % Math.max(1, others.length)];
  if (other === undefined) return;
  coverage.met('leader reset on one side');
  reset(cluster, leader, other, durationMs);
  readOften(cluster);
}

/**
 * Resets the connections of one follower, while the others hear nothing of the leader: no node may take this reset for a refusal by the
 * leader.
 */
export function resetFollower(cluster: Cluster, pick: number, durationMs: number): void {
  const { leader, coverage } = cluster;
  if (leader === undefined) return;
  const others = othersThan(cluster, leader);
  const gone = others[pick % Math.max(1, others.length)];
  if (gone === undefined) return;
  coverage.met('follower reset while the leader is silent');
  for (const other of others) {
    cut(cluster, both(leader, other), durationMs);
    if (other !== gone) reset(cluster, gone, other, 1);
  }
}

/** For a moment, the leader seems gone to every node; then they hear it again. */
export function resetAndHeard(cluster: Cluster): void {
  const { leader, coverage } = cluster;
  if (leader === undefined) return;
  coverage.met('refused leader heard again');
  for (const other of othersThan(cluster, leader)) refuses(cluster, leader, other);
  readOften(cluster);
}

const othersThan = ({ running }: Cluster, member: Member): readonly Member[] => running.filter((other) => other !== member);

function reset(cluster: Cluster, one: Member, other: Member, durationMs: number): void {
  cut(cluster, both(one, other), durationMs);
  refuses(cluster, one, other);
  refuses(cluster, other, one);
}

/** Reports to `to`, a moment later, that `peer` closed its connections and refuses new ones. */
function refuses(cluster: Cluster, peer: Member, to: Member): void {
  later(cluster, 1 + cluster.extraRandom.below(NOTICE_MS_MAX), () => cluster.refused(peer, to));
}

/** Lets clients read on every node that believes it leads, while a lease ends and the next leader is elected. */
function readOften(cluster: Cluster): void {
  for (let step = 1; step < 40; step++) {
    later(cluster, step * 15, () => {
      if (step % 5 === 0) cluster.clients.burst(2);
      cluster.clients.readOnLeaders();
    });
  }
}
