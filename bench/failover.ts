// `node bench/failover.ts [--kills 20] [--with FOLDER]`: kills the active node of three, and measures the time until a write that was sent
// afterwards is acknowledged. Prints Markdown. See docs/benchmarks.md.
import { Option } from 'commander';
import { countOption, readOptions, runCommand } from './command.ts';
import { FailoverCluster } from './failover/failover-cluster.ts';
import { OwnProcesses } from './http/own-processes.ts';

interface Options {
  readonly kills: number;
  /** The folder of the other checkout. */
  readonly with?: string;
}

const options = [
  countOption('--kills <n>', 'leaders that are killed in each cluster').default(20),
  new Option(
    '--with <folder>',
    'kills as many leaders of a cluster that runs another checkout, with its dependencies installed, in turns',
  ),
];

await runCommand('bench/failover.ts', async (args) => {
  const { kills, with: folder } = readOptions<Options>('bench/failover.ts', options, args);
  const own = new OwnProcesses();
  try {
    const clusters = [await FailoverCluster.start(own, 'this checkout')];
    if (folder !== undefined) clusters.push(await FailoverCluster.start(own, 'the other checkout', folder));
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
