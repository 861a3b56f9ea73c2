// Faults of one node: its process and its links. Each can be injected and removed while clients work.
import type { LiveCluster } from './live-cluster.ts';
import type { LiveNode } from './live-node.ts';

export interface Fault {
  /** Completes the sentence "the victim …". */
  readonly what: string;
  /** Strikes etcd, which all nodes share: a round has at most one such fault, because etcd must keep its quorum. */
  readonly isShared?: boolean;
  strike(cluster: LiveCluster, victim: LiveNode): Promise<unknown>;
  mend(cluster: LiveCluster, victim: LiveNode): Promise<unknown>;
}

const heal = async (cluster: LiveCluster, victim: LiveNode): Promise<void> => cluster.isolate(victim, 'open');

export const processFaults: readonly Fault[] = [
  { what: 'is killed', strike: (_, victim) => victim.kill(), mend: (_, victim) => victim.start() },
  { what: 'is frozen', strike: async (_, victim) => victim.pause(), mend: async (_, victim) => victim.resume() },
  { what: 'is stopped', strike: (_, victim) => victim.stop(), mend: (_, victim) => victim.start() },
];

export const linkFaults: readonly Fault[] = [
  { what: 'is behind a black hole', strike: async (cluster, victim) => cluster.isolate(victim), mend: heal },
  { what: 'has its links cut', strike: async (cluster, victim) => cluster.isolate(victim, 'cut'), mend: heal },
  { what: 'has bytes held back', strike: async (cluster, victim) => cluster.isolate(victim, 'hold'), mend: heal },
  { what: 'is not heard', strike: async (cluster, victim) => cluster.silence(victim), mend: heal },
];
