// `node scripts/chaos-kills.ts [--kills 20] [--clients 12]`: repeatedly kills the active node of three real processes under concurrent
// writes and reports how long it took until another node acknowledged a write. At the end it checks every acknowledged write.
import { setTimeout as delay } from 'node:timers/promises';
import { driverLimits } from '@transitd/raft-core';
import { percentile } from '../bench/raft/percentile.ts';
import { LiveCluster } from '../test/cluster/harness/live-cluster.ts';
import type { LiveNode } from '../test/cluster/harness/live-node.ts';
import { losses } from '../test/cluster/harness/survivors.ts';
import { Workload } from '../test/cluster/harness/workload.ts';
import { parseArgs } from './parse-args.ts';

const { values } = parseArgs({
  options: { kills: { type: 'string', default: '20' }, clients: { type: 'string', default: '12' } },
});
const kills = Number(values.kills);
const clients = Number(values.clients);
const medianMaxMs = 1_000;
const longestMaxMs = 4_000;
/**
 * How long a node has been active when it is killed. Before that, a former active node may still be allowed to serve as a standby, and
 * changes of keys wait for it (decision 95).
 */
const ledMsMin = 3_000;
const whole = (ms: number): string => `${Math.round(ms)} ms`;

const cluster = await LiveCluster.formed({ elections: 'shipped', links: 'direct' });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void cluster.end().then(() => process.exit(130)));
}
try {
  process.exitCode = await run();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await cluster.end();
}

async function run(): Promise<number> {
  const workload = await Workload.start(cluster, { clients });
  const tookMs: number[] = [];
  const killsOf = new Map(cluster.nodes.map((node) => [node, 0]));
  let restartedMs = Number.NEGATIVE_INFINITY;
  for (let kill = 1; kill <= kills; kill++) {
    const leader = await rarelyKilledLeader(killsOf);
    // A node that has just started does not vote for a while; do not kill the next active node within that time.
    await delay(Math.max(ledMsMin, restartedMs + 1.2 * driverLimits.electionMs - performance.now()));
    await workload.nextWrite([leader]);
    const gone = leader.kill();
    const killedMs = performance.now();
    const killedAt = Date.now();
    const { doneMs, node } = await workload.nextWrite(cluster.others(leader));
    tookMs.push(doneMs - killedMs);
    const next = await cluster.leader(cluster.others(leader));
    const activeMs = Date.parse((await next.ask('GET', 'sys/leader')).string('active_time')) - killedAt;
    console.log(
      `kill ${kill}: ${leader.name}; ${next.name} active after ${whole(activeMs)}, ` +
        `first write through ${node.name} after ${whole(doneMs - killedMs)}`,
    );
    killsOf.set(leader, (killsOf.get(leader) ?? 0) + 1);
    await gone;
    await leader.start();
    restartedMs = performance.now();
  }
  await cluster.settled();
  await workload.stop();
  const found = await losses(cluster, workload);
  for (const loss of found) console.log(`LOST: ${loss}`);
  return report({ tookMs, found, workload, killsOf });
}

/** Returns the active node, after step-downs if needed, so that each node is killed in turn. */
async function rarelyKilledLeader(killsOf: ReadonlyMap<LiveNode, number>): Promise<LiveNode> {
  const fewest = Math.min(...killsOf.values());
  let leader = await cluster.settled();
  for (let tries = 0; tries < 4 && killsOf.get(leader) !== fewest; tries++) {
    await cluster.ask(leader, 'PUT', 'sys/step-down');
    leader = await cluster.settled();
  }
  return leader;
}

interface Run {
  readonly tookMs: readonly number[];
  readonly found: readonly string[];
  readonly workload: Workload;
  readonly killsOf: ReadonlyMap<LiveNode, number>;
}

/** Prints the results. Returns the exit code. */
function report({ tookMs, found, workload, killsOf }: Run): number {
  const { acknowledged, history } = workload;
  const median = percentile(tookMs, 50);
  const longest = Math.max(...tookMs);
  console.log(`\nErrors that clients got:\n${workload.troublesText}\n`);
  console.log(`${acknowledged} writes acknowledged, ${history.size} calls in ${history.keys.length} histories`);
  console.log(`killed: ${[...killsOf].map(([{ name }, count]) => `${name} ${count}`).join(', ')}`);
  console.log(
    `failover: p50 ${whole(median)} (limit ${whole(medianMaxMs)}), max ${whole(longest)} (limit ${whole(longestMaxMs)})`,
  );
  console.log(
    found.length === 0 ? 'no acknowledged write is lost, every history is linearizable' : `${found.length} faults, see above`,
  );
  return found.length === 0 && median <= medianMaxMs && longest <= longestMaxMs ? 0 : 1;
}
