import { SimRandom } from '../../fakes/sim-random.ts';
import type { Recurring } from '../config/separate-faults.ts';
import type { Member } from '../node/member.ts';
import { DiskError } from '../storage/storage.ts';
import type { Cluster } from '../world/cluster.ts';
import { later } from '../world/links.ts';
import { act } from './actions.ts';

/** Carries out the separate faults until all faults end. */
export function runSeparateFaults(cluster: Cluster): void {
  const { failedSyncs, suspensions, stalls, streams, questions } = cluster.config.separate ?? {};
  recur(cluster, failedSyncs, failSync);
  recur(cluster, suspensions, suspendLeader);
  recur(cluster, streams, disturbConnection);
  if (cluster.config.profile !== 'core') recur(cluster, questions, askToConfirm); // drivers ask and answer
  // The code of `storage` uses promises. These continue between two events of the simulation, so never inside a turn.
  if (cluster.config.profile !== 'storage') recur(cluster, stalls, stallInTurn);
}

function recur(cluster: Cluster, fault: Recurring | undefined, act: (cluster: Cluster, random: SimRandom) => void): void {
  if (fault === undefined) return;
  const random = new SimRandom(fault.seed);
  const next = (): void =>
    later(cluster, 1 + random.below(2 * fault.paceMs), () => {
      if (cluster.clock.now() >= cluster.undisturbedUntilMs && cluster.running.length > 0) act(cluster, random);
      next();
    });
  next();
}

/** Makes one sync fail. The process ends and starts again on pages that it can read, but that are not durable; later the power fails. */
function failSync(cluster: Cluster, random: SimRandom): void {
  const member = random.pick(cluster.running);
  member.outlivesDiskErrors = true;
  member.storage.failSync(new DiskError('EIO'));
  later(cluster, 100 + random.below(2500), () => {
    member.outlivesDiskErrors = false;
    cluster.crash(member);
    cluster.clock.after(100, () => cluster.start(member));
  });
}

/**
 * Suspends the leader's machine while the other nodes elect another leader. Nothing runs there and its monotonic clock stands still; only
 * its time of day shows that. Pauses that are too short to be noticed add up.
 */
function suspendLeader(cluster: Cluster, random: SimRandom): void {
  const { leader } = cluster;
  if (leader === undefined) return;
  act(cluster, { kind: 'electBehind', pick: random.uint32(), atMs: 0, durationMs: 0 });
  const isBrief = random.chance(0.5);
  if (isBrief)
    for (let atMs = 600; atMs < 3_000; atMs += 60) later(cluster, atMs, () => suspend(cluster, leader, 10 + random.below(6)));
  else
    later(cluster, 800 + random.below(1_800), () => suspend(cluster, leader, random.pick([100, 400, 2_000]) + random.below(400)));
}

/**
 * Lets a node's program stop inside a turn, for a leader perhaps while the other nodes elect another one; the monotonic clock may stop too.
 * Or lets the node apply its entries slowly, so that a turn applies only a part of them.
 */
function stallInTurn(cluster: Cluster, random: SimRandom): void {
  const { leader, running, clock } = cluster;
  const member = leader !== undefined && random.chance(0.7) ? leader : random.pick(running);
  if (random.chance(0.3)) {
    member.slowApply = { untilMs: clock.now() + 500 + random.below(2_500), entryMs: 1 + random.below(8) };
    return;
  }
  const stopsClock = random.chance(0.3);
  const durationMs = random.pick([5, 60, 400, 1_500]) + random.below(100);
  const isDeposed = member === leader && random.chance(0.5);
  if (isDeposed) act(cluster, { kind: 'electBehind', pick: random.uint32(), atMs: 0, durationMs: 0 });
  later(cluster, isDeposed ? 800 + random.below(1_800) : 0, () => {
    const isReading = random.chance(0.3);
    member.stall = { calls: isReading ? 0 : random.below(40), durationMs, stopsClock };
    // The next port that the program calls is then the clock by which it judges its lease.
    if (isReading) cluster.clients.readOn(member);
  });
}

/** Lets a connection of the leader, or any other, stall or end; or stall and then end, so that its frames arrive after newer ones. */
function disturbConnection({ network, members, leader }: Cluster, random: SimRandom): void {
  const one = leader !== undefined && random.chance(0.6) ? leader : random.pick(members);
  const other = random.pick(members);
  const [from, to] = random.chance(0.5) ? [one, other] : [other, one];
  if (random.chance(0.6)) network.stall(from.id, to.id, random.pick([20, 300, 2_000]) + random.below(200));
  if (random.chance(0.6))
    network.reconnect(from.id, to.id, { kept: random.below(10), reconnectMs: 1 + random.below(random.pick([20, 1_000])) });
}

/**
 * Lets the leader, or another node, ask every node about the newest entries that some node has applied, a few times in a row. Answers are
 * checked when they are sent.
 */
function askToConfirm(cluster: Cluster, random: SimRandom): void {
  const { leader, running, members, coverage, safety } = cluster;
  const asker = leader !== undefined && random.chance(0.8) ? leader : random.pick(running);
  const newest = Math.max(...running.map(({ incarnation }) => incarnation?.machine.applied ?? 0));
  for (let more = 0; more < 3; more++) {
    later(cluster, more * random.below(20), () => {
      const { incarnation } = asker;
      if (incarnation === undefined) return;
      const index = newest + more;
      for (const { id } of members.filter((member) => member !== asker))
        cluster.enter(asker, incarnation, () =>
          incarnation.host.confirm(id, index, (outcome) => {
            if (outcome.kind !== 'applied') return;
            coverage.met('entry confirmed');
            safety.confirmed(index, outcome.index);
          }),
        );
    });
  }
}

/** Stops a machine with its monotonic clock. */
export function suspend({ coverage }: Cluster, member: Member, durationMs: number): void {
  member.clock.stop(durationMs);
  member.incarnation?.process.pause(durationMs);
  coverage.met('clock stopped');
}
