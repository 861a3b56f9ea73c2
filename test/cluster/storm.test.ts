// Every kind of fault, one after the other, under load. At the end every node must have every acknowledged write.
import { expect } from 'chai';
import { linkFaults, processFaults } from './harness/faults.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { expectNothingLost } from './harness/survivors.ts';
import { Workload } from './harness/workload.ts';

const faults = [...processFaults, ...linkFaults];
/** A shorter election timeout than in other tests: here an extra election is harmless, and the test waits for one after each fault. */
const config = { raft: { election_timeout: '2s' } };

describe('a storm of faults', function () {
  this.timeout(2 * scenarioMs);

  for (const who of ['the active node', 'a standby'] as const) {
    it(`at ${who} loses no acknowledged write, and leaves linearizable histories`, () =>
      withCluster({ config }, async (cluster) => {
        const workload = await Workload.start(cluster, { clients: 6, pauseMs: 10, seed: 7 });
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
