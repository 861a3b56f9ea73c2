// `node bench/scale.ts`: measures a cluster with a growing number of nodes, with Raft or on an etcd, and nodes on etcd with a
// growing number of keys. Prints the report, and writes it to bench/results. See docs/sizing.md.
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { runCommand } from './command.ts';
import { markdown } from './growth/report.ts';
import { Generator } from './http/generator.ts';
import { OwnCluster } from './http/own-cluster.ts';
import { OwnProcesses } from './http/own-processes.ts';
import { machine } from './machine.ts';
import { copiesCurve } from './scale/copies.ts';
import { coreCurve } from './scale/core.ts';
import { keysCurve } from './scale/keys.ts';
import { measurePoint, type Point } from './scale/measures.ts';
import { isLearner, type Options, parseOptions, usage } from './scale/options.ts';

type Curve = ReturnType<typeof coreCurve>;

await runCommand('bench/scale.ts', usage, (args) => main(parseOptions(args)));

async function main(options: Options): Promise<void> {
  const own = new OwnProcesses();
  const generator = new Generator(1);
  const [date, [loadBefore = 0]] = [new Date().toISOString(), loadavg()];
  const { keys, copies, etcd, requests, restSeconds, out } = options;
  const isOfKeys = keys.length + copies.length > 0;
  const engine = etcd === undefined && !isOfKeys ? 'raft' : 'etcd';
  try {
    const curves = isOfKeys ? await curvesOfKeys(own, generator, options) : await curvesOfNodes(own, generator, options);
    const settings = { storage: engine, requests, 'seconds at rest': restSeconds };
    const run = { title: 'Scale', machine: machine(), loadAfter: loadavg()[0] ?? 0, curves };
    writeReport(out, engine, { ...run, date, loadBefore, settings });
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

async function curvesOfNodes(own: OwnProcesses, generator: Generator, options: Options): Promise<Curve[]> {
  const { nodes, etcd, learners, requests, restSeconds } = options;
  const cluster = await startCluster(own, options);
  const points: Point[] = [];
  for (const size of nodes) {
    while (cluster.nodes.length < size) {
      const learner = etcd === undefined && isLearner(cluster.nodes.length + 1);
      await cluster.add(learner ? { non_voter: true } : {});
    }
    const point = await measurePoint({ cluster, generator, requests, restSeconds });
    console.error(JSON.stringify(point));
    points.push(point);
  }
  // How a leader's core scales does not depend on processes; etcd has none.
  return [{ size: 'nodes', points }, ...(etcd === undefined ? [coreCurve(learners)] : [])];
}

async function curvesOfKeys(own: OwnProcesses, generator: Generator, options: Options): Promise<Curve[]> {
  const { keys, copies, requests } = options;
  const curves: Curve[] = copies.length > 0 ? [await copiesCurve(copies)] : [];
  if (keys.length === 0) return curves;
  const cluster = await startCluster(own, options);
  await cluster.add();
  return [...curves, await keysCurve({ cluster, generator, keys, requests, say: (text) => console.error(text) })];
}

/** Writes `DATE-TIME-scale-ENGINE.md` and `.json` into the folder, and prints the Markdown. */
function writeReport(folder: string, engine: string, run: Parameters<typeof markdown>[0]): void {
  mkdirSync(folder, { recursive: true });
  const name = join(folder, `${run.date.slice(0, 19).replace('T', '-').replaceAll(':', '')}-scale-${engine}`);
  writeFileSync(`${name}.md`, `${markdown(run)}\n`);
  writeFileSync(`${name}.json`, `${JSON.stringify(run, undefined, 2)}\n`);
  console.log(markdown(run));
}
