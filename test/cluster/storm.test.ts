// Faults of every kind, one after the other, under load; then everything that was acknowledged is looked for on every node.
import { expect } from 'chai';
import type { LiveCluster } from './live-cluster.ts';
import type { LiveNode } from './live-node.ts';
import { scenarioMs, withCluster } from './scenario.ts';
import { expectNothingLost } from './survivors.ts';
import { Workload } from './workload.ts';

interface Fault {
  readonly what: string;
  strike(cluster: LiveCluster, victim: LiveNode): Promise<unknown> | undefined;
  mend(cluster: LiveCluster, victim: LiveNode): Promise<unknown> | undefined;
}

const faults: readonly Fault[] = [
  { what: 'is killed', strike: (_, victim) => victim.kill(), mend: (_, victim) => victim.start() },
  {
    what: 'is frozen',
    strike: async (_, victim) => victim.pause(),
    mend: async (_, victim) => victim.resume(),
  },
  {
    what: 'is behind a black hole',
    strike: async (cluster, victim) => cluster.isolate(victim),
    mend: async (cluster) => cluster.heal(),
  },
  {
    what: 'has its links cut',
    strike: async (cluster, victim) => cluster.isolate(victim, 'cut'),
    mend: async (cluster) => cluster.heal(),
  },
  {
    what: 'has bytes held back',
    strike: async (cluster, victim) => cluster.isolate(victim, 'hold'),
    mend: async (cluster) => cluster.heal(),
  },
  {
    what: 'is not heard',
    strike: async (cluster, victim) => {
      for (const other of cluster.others(victim)) cluster.loseOneWay(victim, other);
    },
    mend: async (cluster) => cluster.heal(),
  },
  { what: 'is stopped', strike: (_, victim) => victim.stop(), mend: (_, victim) => victim.start() },
];

describe('a storm of faults', function () {
  this.timeout(2 * scenarioMs);

  for (const who of ['the active node', 'a standby'] as const) {
    it(`at ${who} loses nothing that was acknowledged, and leaves histories that one order explains`, () =>
      withCluster({}, async (cluster) => {
        const workload = await Workload.start(cluster, { clients: 6, seed: 7 });
        for (const { strike, mend } of faults) {
          const leader = await cluster.settled();
          const victim = who === 'the active node' ? leader : (cluster.others(leader)[0] ?? leader);
          await strike(cluster, victim);
          await cluster.leader(cluster.others(victim));
          for (let i = 0; i < 20; i++) await workload.nextWrite(cluster.others(victim));
          await mend(cluster, victim);
        }
        await cluster.settled();
        await workload.stop();
        await expectNothingLost(cluster, workload);
        expect(workload.acknowledged).to.be.greaterThan(200);
      }));
  }
});
