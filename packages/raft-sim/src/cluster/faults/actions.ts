import type { Action } from '../config/config.ts';
import type { Member } from '../node/member.ts';
import { DiskError } from '../storage/storage.ts';
import type { Cluster } from '../world/cluster.ts';
import { between, both, cut, type Link, later } from '../world/links.ts';
import { raceSnapshot } from './snapshot-race.ts';

const BURST = 40;

/** Carries out one step of a schedule on the cluster in its current state. */
export function act(cluster: Cluster, { kind, pick, durationMs }: Action): void {
  const { members, network, clock, random, coverage, operator } = cluster;
  const running = cluster.running;
  const one = running[pick % Math.max(1, running.length)];
  const other = members[(pick >>> 8) % members.length];
  cluster.trace.note(clock.now(), kind, 0, pick, durationMs);
  switch (kind) {
    case 'crash': {
      // An installation and a write of several entries are short, so a random action would seldom hit them.
      const vulnerable = running.find(
        ({ incarnation, storage }) => incarnation?.snapshots.isInstalling === true || storage.unsynced > 2,
      );
      const victim = vulnerable ?? one;
      if (victim !== undefined) restart(cluster, victim, durationMs);
      break;
    }
    case 'crashAll':
      for (const [position, member] of running.entries()) restart(cluster, member, durationMs + ((pick >>> position) & 1) * 300);
      coverage.met('all nodes restarted at once');
      break;
    case 'rollingRestart':
      for (const [position, member] of running.entries())
        later(cluster, position * durationMs, () => restart(cluster, member, 100));
      break;
    case 'pause':
      if (one?.incarnation === undefined) break;
      one.incarnation.process.pause(durationMs);
      coverage.met('process paused');
      break;
    case 'cutOneWay':
      if (one !== undefined && other !== undefined) cut(cluster, [[one, other]], durationMs);
      break;
    case 'cutPair':
      if (one !== undefined && other !== undefined) cut(cluster, both(one, other), durationMs);
      break;
    case 'partition':
      cut(
        cluster,
        between(members, ({ id }) => (pick >>> (id % 31)) & 1),
        durationMs,
      );
      break;
    case 'isolateLeader':
      isolateLeader(cluster, pick, durationMs);
      break;
    case 'electBehind':
      electBehind(cluster, pick);
      break;
    case 'bridge':
      // One node is connected to both sides, which are not connected to each other.
      cut(
        cluster,
        between(
          members.filter((member) => member !== one),
          ({ id }) => id & 1,
        ),
        durationMs,
      );
      break;
    case 'flap':
      if (one === undefined || other === undefined) break;
      for (let flap = 0; flap < 5; flap++) later(cluster, flap * 2 * 200, () => cut(cluster, both(one, other), 200));
      break;
    case 'heal':
      network.mendAll();
      break;
    case 'slowDisk':
      if (one !== undefined) one.slowness = { untilMs: clock.now() + 2 * durationMs, extraMs: 1 + (pick % 2000) };
      break;
    case 'hangDisk':
      if (one !== undefined) one.slowness = { untilMs: clock.now() + durationMs, extraMs: 0 };
      coverage.met('disk hung');
      break;
    case 'syncError':
      if (one !== undefined) one.storage.failNext(new DiskError('EIO'), random.below(4));
      break;
    case 'diskFull':
      if (one !== undefined) fillDisk(cluster, one, pick, durationMs);
      break;
    case 'bitFlip':
    case 'loseTail':
      damage(cluster, one, kind === 'loseTail' ? 1 : 1 + (pick % 20), durationMs);
      break;
    case 'seal':
      if (one !== undefined) setFitness(cluster, one, 'sealed');
      break;
    case 'unseal':
      for (const member of members) setFitness(cluster, member, 'fit');
      break;
    case 'transfer': {
      const { leader } = cluster;
      const incarnation = leader?.incarnation;
      const to = pick % 2 === 0 ? undefined : other?.id;
      if (leader !== undefined && incarnation !== undefined)
        cluster.enter(leader, incarnation, () => incarnation.host.transfer(to));
      break;
    }
    case 'wipeAndRejoin':
      if (one === undefined || !operator.canLose(one)) break;
      one.fate = 'wiped';
      cluster.crash(one);
      operator.rejoin();
      coverage.met('wiped node rejoined');
      break;
    case 'burst':
      cluster.clients.burst(BURST);
      break;
    case 'raceSnapshot':
      raceSnapshot(cluster, one);
      break;
    case 'addLearner':
    case 'promote':
    case 'demote':
    case 'removeVoter':
    case 'removeLeader':
    case 'replaceVoter':
    case 'jointChange':
    case 'leaveJoint':
    case 'removeAndReadd':
      operator.change(kind, pick);
      break;
  }
}

export function setFitness(cluster: Cluster, member: Member, fitness: Member['fitness']): void {
  const { incarnation } = member;
  member.fitness = fitness;
  // Reads the fitness when the task runs: if a pause is prolonged meanwhile, an earlier call may run after a later one.
  if (incarnation !== undefined) cluster.enter(member, incarnation, () => incarnation.host.setFitness(member.fitness));
}

/** Cuts the leader off from all other nodes, in one direction or in both; in some runs it appends entries that are superseded later. */
function isolateLeader(cluster: Cluster, pick: number, durationMs: number): void {
  const { leader, members, clock, operator } = cluster;
  if (leader === undefined) return;
  const links = members.flatMap((member): Link[] =>
    pick % 3 === 0 ? [[member, leader]] : pick % 3 === 1 ? [[leader, member]] : both(leader, member),
  );
  const doomsWrites = (pick & 8) !== 0;
  const isolatedMs = doomsWrites ? durationMs + 2_500 : durationMs;
  cut(cluster, links, isolatedMs);
  readAround(cluster, 600);
  // The entries that the isolated leader appends from now on are superseded later. They may be a configuration change, or a write that
  // is still under way when it is superseded.
  if (doomsWrites) leader.slowness = { untilMs: clock.now() + isolatedMs + 1_500, extraMs: 0 };
  if (doomsWrites) cluster.clients.burst(10);
  if ((pick & 16) !== 0) operator.change(pick % 5 === 0 ? 'removeVoter' : 'demote', pick);
}

/**
 * Gets another leader elected while the current one may still hold its lease. One node hears nothing from the leader until it campaigns;
 * then the others lose the leader too, perhaps by a restart. Clients read on both sides.
 */
function electBehind(cluster: Cluster, pick: number): void {
  const { leader, members } = cluster;
  const others = members.filter((member) => member !== leader && member.incarnation !== undefined);
  const rival = others[pick % Math.max(1, others.length)];
  if (leader === undefined || rival === undefined) return;
  cut(cluster, both(leader, rival), 3_500);
  const momentMs = 800 + (pick % 1_300);
  later(cluster, momentMs, () => {
    for (const other of others) {
      cut(cluster, both(leader, other), 1_500);
      if ((pick & 4096) !== 0 && other !== rival) restart(cluster, other, 5);
    }
  });
  for (let step = 1; step < 9; step++) later(cluster, momentMs + step * 100, () => cluster.clients.burst(4));
  readAround(cluster, momentMs);
}

/** Lets clients read on every node that believes it leads, while one lease may be ending and another beginning. */
function readAround(cluster: Cluster, fromMs: number): void {
  for (let step = 0; step < 30; step++) later(cluster, fromMs + step * 50, () => cluster.clients.readOnLeaders());
}

function restart(cluster: Cluster, member: Member, afterMs: number): void {
  cluster.crash(member);
  cluster.clock.after(afterMs, () => cluster.start(member));
}

/** Lets the disk reach its reserve, so that the node prefers not to lead. Sometimes the disk becomes full nevertheless. */
function fillDisk(cluster: Cluster, member: Member, pick: number, durationMs: number): void {
  cluster.coverage.met('disk reserve reached');
  setFitness(cluster, member, 'low');
  if (pick % 3 === 0) member.storage.failNext(new DiskError('ENOSPC'), 0);
  cluster.clock.after(durationMs, () => {
    if (member.fitness === 'low') setFitness(cluster, member, 'fit');
  });
}

/** Destroys entries below the high-water mark while the node is down; never if that would lose a quorum. */
function damage(cluster: Cluster, victim: Member | undefined, depth: number, afterMs: number): void {
  if (victim === undefined || !cluster.operator.canLose(victim)) return;
  const { storage } = victim;
  const { durable, mark } = storage;
  if (mark <= durable.base.index) return;
  const index = Math.max(durable.base.index + 1, mark - depth + 1);
  victim.observed.remember();
  cluster.crash(victim);
  victim.isDamaged = storage.rotEntry(Math.min(index, mark));
  cluster.clock.after(afterMs, () => cluster.start(victim));
}
