// `node scripts/upgrade.ts [--rounds 5] [--clients 8]`: rolls a cluster of three processes between this release and a test build of the
// next one, under load, and raises the feature level at the end. Checks after each round that no acknowledged write is lost, that each
// key's history is linearizable, and that clients saw no error that a plain restart does not cause. Exit code 1 otherwise.

import { LiveCluster } from '../test/cluster/harness/live-cluster.ts';
import { losses } from '../test/cluster/harness/survivors.ts';
import { Workload } from '../test/cluster/harness/workload.ts';
import { nextLevel, Releases } from '../test/cluster/upgrade/harness/next-release.ts';
import { allSupport, levelsOf, roll, unexplained } from '../test/cluster/upgrade/harness/roll.ts';
import { parseArgs } from './parse-args.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, clients: { type: 'string', default: '8' } },
});
const [rounds, clients] = [Number(values.rounds), Number(values.clients)];

const releases = new Releases();
const found: string[] = [];
let cluster: LiveCluster | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end().then(() => process.exit(130)));
try {
  cluster = await LiveCluster.formed({ workers: 'auto', elections: 'shipped' });
  const next = await releases.next();
  for (let round = 1; round <= rounds; round++) await check(cluster, round, [next, undefined]);
  await check(cluster, rounds + 1, [next]);
  await allSupport(cluster, nextLevel);
  const answer = await cluster.askWhenLed(cluster.node(1), 'POST', 'sys/feature-level/raise', {});
  if (answer.status !== 200) found.push(`the level was not raised: ${answer.status} ${answer.text}`);
  await check(cluster, rounds + 2, [next]);
  console.log(`feature level ${(await levelsOf(cluster, cluster.node(1))).level}`);
} catch (error) {
  found.push(error instanceof Error ? error.message : String(error), cluster?.tails() ?? '');
} finally {
  await end();
}
for (const text of found) console.error(text);
// The link proxies reset sockets that are shutting down, which can keep Node 24 from ending by itself.
process.exit(found.length > 0 ? 1 : 0);

/** Rolls the cluster to these releases under a new load, and checks its histories. */
async function check(on: LiveCluster, round: number, programs: readonly (string | undefined)[]): Promise<void> {
  const workload = await Workload.start(on, { clients, pauseMs: 10, label: `r${round}x` });
  for (const program of programs) await roll(on, workload, program);
  await workload.stop();
  const faults = [...unexplained(workload), ...(await losses(on, workload))];
  found.push(...faults.map((fault) => `round ${round}: ${fault}`));
  console.log(`round ${round}: ${workload.acknowledged} acknowledged writes, ${faults.length} faults`);
}

async function end(): Promise<void> {
  await cluster?.end();
  releases.remove();
}
