import type { ExtraAction } from '../config/extra-faults.ts';
import type { Member } from '../node/member.ts';
import { diskParts } from '../storage/storage.ts';
import type { Cluster } from '../world/cluster.ts';
import { later } from '../world/links.ts';
import { appendBesideInstall } from './append-beside-install.ts';
import { killLeader, resetAndHeard, resetFollower, resetLeader, resetOneSide } from './endings.ts';
import {
  abortTransfer,
  answerToEarlierRun,
  cutOffOneHalf,
  installBesideFlush,
  installBesideMark,
  leaveLastVoter,
  strangerAnswers,
} from './scenarios.ts';
import { suspend } from './separate-actions.ts';

/** Carries out the second schedule, step by step, until all faults end. */
export function runExtraSchedule(cluster: Cluster, position = 0): void {
  const action = cluster.config.extra?.schedule[position];
  if (action === undefined) return;
  later(cluster, action.afterMs, () => {
    if (cluster.clock.now() >= cluster.undisturbedUntilMs) carryOutExtra(cluster, action);
    runExtraSchedule(cluster, position + 1);
  });
}

function carryOutExtra(cluster: Cluster, { kind, pick, durationMs }: ExtraAction): void {
  const { clock, coverage, extraRandom: random, running } = cluster;
  const one = running[pick % Math.max(1, running.length)];
  cluster.trace.note(clock.now(), kind, 0, pick, durationMs);
  if (one === undefined) return;
  switch (kind) {
    case 'kill':
      restartKilled(cluster, one, durationMs);
      break;
    case 'killThenPowerLoss':
      killThenPowerLoss(cluster, running.find(({ storage }) => storage.unsynced > 1) ?? one, 1 + random.below(60));
      break;
    case 'changeClockRate':
      one.clock.setRate(random.pick([0.9, 1, 1.1]));
      coverage.met('clock rate changed');
      break;
    case 'stopClock':
      suspend(cluster, one, durationMs);
      break;
    case 'hangDiskPart':
      one.hangs.set(random.pick(diskParts), clock.now() + durationMs);
      coverage.met('part of a disk hung');
      break;
    case 'strangerAnswers':
      strangerAnswers(cluster, pick);
      break;
    case 'answerToEarlierRun':
      answerToEarlierRun(cluster, pick);
      break;
    case 'leaveLastVoter':
      leaveLastVoter(cluster);
      break;
    case 'cutOffOneHalf':
      cutOffOneHalf(cluster);
      break;
    case 'installBesideFlush':
      installBesideFlush(cluster, pick);
      break;
    case 'installBesideMark':
      installBesideMark(cluster, pick);
      break;
    case 'appendBesideInstall':
      appendBesideInstall(cluster, pick);
      break;
    case 'killLeader':
      killLeader(cluster, durationMs);
      break;
    case 'resetLeader':
      resetLeader(cluster, pick, durationMs);
      break;
    case 'resetOneSide':
      resetOneSide(cluster, pick, durationMs);
      break;
    case 'resetFollower':
      resetFollower(cluster, pick, durationMs);
      break;
    case 'resetAndHeard':
      resetAndHeard(cluster);
      break;
    case 'abortTransfer':
      abortTransfer(cluster, pick);
      break;
  }
}

function restartKilled(cluster: Cluster, member: Member, afterMs: number): void {
  cluster.kill(member);
  cluster.clock.after(afterMs, () => cluster.start(member));
}

/** Cuts the power while the node recovers the data that its previous incarnation had written, or just after that. */
function killThenPowerLoss(cluster: Cluster, member: Member, graceMs: number): void {
  restartKilled(cluster, member, 1);
  later(cluster, 1 + graceMs, () => {
    if (member.process !== undefined) cluster.coverage.met('power lost after a kill');
    cluster.crash(member);
    cluster.clock.after(100, () => cluster.start(member));
  });
}
