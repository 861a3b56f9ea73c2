import { performance } from 'node:perf_hooks';
import { fill, memoryOf } from '../growth/measures.ts';
import type { Generator } from '../http/generator.ts';
import type { OwnCluster } from '../http/own-cluster.ts';
import { usageOf } from '../http/process-usage.ts';
import type { Point } from './measures.ts';

interface Parts {
  readonly cluster: OwnCluster;
  readonly generator: Generator;
  readonly keys: readonly number[];
  readonly requests: number;
  readonly say: (text: string) => void;
}

/** Creates keys in a cluster of two nodes, and starts the standby again at each number of them. */
export async function keysCurve(parts: Parts): Promise<{ readonly size: string; readonly points: readonly Point[] }> {
  const { cluster, generator, keys, requests, say } = parts;
  const points: Point[] = [];
  let stored = 0;
  for (const size of keys) {
    const [active, standby] = cluster.nodes;
    if (active === undefined || standby === undefined) throw new Error('this takes two nodes');
    await fill(generator, active.server, { path: `scale/keys/to-${size}-{n}` }, { count: size - stored, connections: 64 });
    const created = await fill(
      generator,
      active.server,
      { path: `scale/keys/at-${size}-{n}` },
      { count: requests, connections: 1 },
    );
    stored = size + requests;
    await cluster.end(standby);
    const begunMs = performance.now();
    const { server } = await cluster.startAgain(standby);
    const point = {
      size,
      'start of a standby, ms': performance.now() - begunMs,
      'start of a standby, CPU ms': (usageOf(server.pids)?.cpuUs ?? Number.NaN) / 1000,
      'memory of a standby after its start, MiB': memoryOf(server).ownMebibytes,
      'memory of the active node, MiB': memoryOf(active.server).ownMebibytes,
      'create, one connection, p50 ms': created.p50Ms,
    };
    say(JSON.stringify(point));
    points.push(point);
  }
  return { size: 'keys', points };
}
