// `node bench/scale.ts`: measures a cluster with a growing number of nodes, with Raft or on an etcd. Prints the report, and writes it to
// bench/results. See docs/sizing.md.
import { randomBytes } from 'node:crypto';
import { loadavg } from 'node:os';
import { runCommand } from './command.ts';
import { markdown } from './growth/report.ts';
import { Generator } from './http/generator.ts';
import { OwnCluster } from './http/own-cluster.ts';
import { OwnProcesses } from './http/own-processes.ts';
import { machine, writeReport } from './report.ts';
import { measurePoint, type Point } from './scale/measures.ts';
import { isLearner, type Options, parseOptions } from './scale/options.ts';

await runCommand('bench/scale.ts', (args) => main(parseOptions(args)));

async function main(options: Options): Promise<void> {
  const own = new OwnProcesses();
  const generator = new Generator(1);
  const [date, [loadBefore = 0]] = [new Date().toISOString(), loadavg()];
  const { etcd, requests, rest, out } = options;
  const engine = etcd === undefined ? 'raft' : 'etcd';
  try {
    const curves = [{ size: 'nodes', points: await pointsOf(await startCluster(own, options), generator, options) }];
    const settings = { storage: engine, requests, 'seconds at rest': rest };
    const loadAfter = loadavg()[0] ?? 0;
    const run = { title: 'Scale', date, machine: machine(), settings, loadBefore, loadAfter, curves };
    writeReport(out, `scale-${engine}`, run, markdown(run));
  } finally {
    await generator.close();
    await own.stop();
  }
}

/** Starts a node with a mount and a key in it. */
async function startCluster(own: OwnProcesses, { etcd }: Options): Promise<OwnCluster> {
  // Gateway threads would compete for the cores that the nodes of one machine share.
  const storage = { type: 'etcd', endpoints: [etcd], prefix: `bench-${randomBytes(4).toString('hex')}` };
  const configuration = { workers: 0, ...(etcd !== undefined && { storage }) };
  const cluster = await OwnCluster.start(own, { configuration });
  const [active] = cluster.nodes;
  await active?.server.call('POST', 'sys/mounts/scale', { type: 'transit' });
  await active?.server.call('POST', 'scale/keys/one', {});
  return cluster;
}

async function pointsOf(cluster: OwnCluster, generator: Generator, options: Options): Promise<Point[]> {
  const { nodes, etcd, requests, rest } = options;
  const points: Point[] = [];
  for (const size of nodes) {
    while (cluster.nodes.length < size) {
      const learner = etcd === undefined && isLearner(cluster.nodes.length + 1);
      await cluster.add(learner ? { non_voter: true } : {});
    }
    const point = await measurePoint({ cluster, generator, requests, rest });
    console.error(JSON.stringify(point));
    points.push(point);
  }
  return points;
}
