// The disk of the active node becomes slow and stays slow. The leadership moves to a voter with a faster disk, and moves only once.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { attachStrace } from './harness/strace.ts';
import { expectNothingLost } from './harness/survivors.ts';
import { until } from './harness/until.ts';
import { Workload } from './harness/workload.ts';

/** Far more than three times what a disk needs on a busy machine. */
const syncMs = 1_200;
/**
 * Number of slow syncs. Together they take longer than the time for which another disk must be faster (30 s) plus the pauses between
 * checks.
 */
const slowSyncs = 45;
const transferMs = 300_000;

/** Delays every sync of the Raft log of this node. `ended` returns how many of them have ended. */
async function withSlowLog(node: LiveNode, task: (ended: () => number) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-strace-'));
  const trace = join(folder, 'trace');
  const segments = readdirSync(join(node.dataDir, 'generation-1/log'));
  const files = segments.flatMap((name) => ['-P', join(node.dataDir, 'generation-1/log', name)]);
  const inject = `inject=fdatasync:delay_enter=${syncMs * 1_000}`;
  const detach = await attachStrace(node, ['-o', trace, ...files, '-e', 'trace=fdatasync', '-e', inject]);
  try {
    await task(() => readFileSync(trace, 'utf8').split('= 0').length - 1);
  } finally {
    await detach();
    rmSync(folder, { recursive: true });
  }
}

/** Returns how often all nodes together have logged this message. */
const logged = ({ nodes }: LiveCluster, message: string): number =>
  nodes.reduce((sum, { log }) => sum + log.split(`"msg":"${message}`).length - 1, 0);
const elections = (cluster: LiveCluster): number => logged(cluster, 'this node was elected leader');
const transfers = (cluster: LiveCluster): number => logged(cluster, 'leadership is transferred: writes to the disk of this node');

const traceable = spawnSync('strace', ['-V']).status === 0 || process.env['CI'] !== undefined;

describe('an active node whose disk stays slower than those of other voters', function () {
  this.timeout(scenarioMs);

  (traceable ? it : it.skip)('transfers the leadership to one of them, once, and no write is lost', () =>
    withCluster({ elections: 'never' }, async (cluster) => {
      const former = await cluster.settled();
      const before = elections(cluster);
      const load = await Workload.start(cluster, { clients: 4, pauseMs: 100 });
      let leader = former;
      await withSlowLog(former, async () => {
        await until(`${former.name} has transferred the leadership`, () => transfers(cluster) > 0, {
          withinMs: transferMs,
          explain: () => `${load.troublesText}\n${cluster.tails()}`,
        });
        leader = await cluster.leader(cluster.others(former));
        await load.nextWrite([leader]);
      });

      // The disk of the former leader is faster now, but that is no reason to transfer the leadership back so soon.
      await withSlowLog(leader, async (ended) => {
        await until(`${slowSyncs} slow syncs have ended on ${leader.name}`, () => ended() >= slowSyncs, {
          withinMs: transferMs,
          explain: () => cluster.tails(),
        });
      });
      await load.stop();
      expect((await cluster.settled()).name).to.equal(leader.name);
      expect(transfers(cluster), 'transfers to a faster disk').to.equal(1);
      expect(elections(cluster) - before, 'changes of the leader').to.equal(1);
      await expectNothingLost(cluster, load);
    }),
  );
});
