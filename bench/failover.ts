// `node bench/failover.ts [--kills 20] [--with FOLDER]`: kills the active node of three, and measures the time until a write that was sent
// afterwards is acknowledged. Prints Markdown. See docs/benchmarks.md.
import { parseArgs } from 'node:util';
import { runCommand } from './command.ts';
import { FailoverCluster } from './failover/failover-cluster.ts';
import { OwnProcesses } from './http/own-processes.ts';

const usage = `node bench/failover.ts [options]

  --kills N       leaders that are killed in each cluster; default 20
  --with FOLDER   kills as many leaders of a cluster that runs another checkout, with its dependencies installed, in turns`;

await runCommand('bench/failover.ts', usage, async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: { kills: { type: 'string', default: '20' }, with: { type: 'string' } },
  });
  const kills = Number(values.kills);
  if (!Number.isSafeInteger(kills) || kills < 1) throw new Error('--kills must be a positive integer');
  const own = new OwnProcesses();
  try {
    const clusters = [await FailoverCluster.start(own, 'this checkout')];
    if (values.with !== undefined) clusters.push(await FailoverCluster.start(own, 'the other checkout', values.with));
    for (let kill = 0; kill < kills; kill++)
      for (const cluster of kill % 2 === 0 ? clusters : clusters.toReversed()) {
        await cluster.failover();
        console.error(`${kill + 1}/${kills} ${cluster.latest}`);
      }
    console.log(`\n| kill -9 of the active node of three to the first write, ${kills} kills | p50 ms | shortest | longest |`);
    console.log('|---|---:|---:|---:|');
    for (const cluster of clusters) console.log(cluster.line);
  } finally {
    await own.stop();
  }
});
