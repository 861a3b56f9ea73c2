import { SimRandom } from '../../fakes/sim-random.ts';
import type { Recurring } from '../config/separate-faults.ts';
import { DiskError } from '../storage/storage.ts';
import type { Cluster } from '../world/cluster.ts';
import { later } from '../world/links.ts';

/** Carries out the separate faults until all faults end. */
export function runSeparateFaults(cluster: Cluster): void {
  const { failedSyncs } = cluster.config.separate ?? {};
  recur(cluster, failedSyncs, failSync);
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
