import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { fill } from '../growth/measures.ts';
import { type ApiServer, valueAt } from '../http/api-server.ts';
import type { Generator } from '../http/generator.ts';
import type { ClusterNode, OwnCluster } from '../http/own-cluster.ts';
import { usageOf } from '../http/process-usage.ts';
import { median } from '../statistics.ts';
import { sentBytes } from './sent-bytes.ts';

/** The measurements with one number of nodes. Numbers in the units that their names end with. */
export type Point = Readonly<Record<string, number>> & { readonly size: number };

export interface Parts {
  readonly cluster: OwnCluster;
  readonly generator: Generator;
  readonly requests: number;
  /** How long the nodes are observed at rest, in seconds. */
  readonly rest: number;
}

const revocations = 50;
const plaintext = { plaintext: Buffer.alloc(32).toString('base64') };

/** Measures the cluster with the nodes that it has. @throws Error if another node became active meanwhile */
export async function measurePoint(parts: Parts): Promise<Point> {
  const { cluster, generator, requests, rest: restS } = parts;
  const [active, ...others] = cluster.nodes;
  const standby = others.at(-1);
  if (active === undefined || standby === undefined) throw new Error('a cluster needs two nodes');
  const size = cluster.nodes.length;
  const usage = new Usage(active, others);
  const begunMs = performance.now();
  await delay(1000 * restS);
  const atRest = usage.take();
  const tookS = (performance.now() - begunMs) / 1000;

  const one = { count: Math.min(requests, 500), connections: 1 };
  const alone = await fill(generator, active.server, { path: `scale/keys/alone-${size}-{n}` }, one);
  const many = { count: requests, connections: 16 };
  usage.take();
  const created = await fill(generator, active.server, { path: `scale/keys/many-${size}-{n}` }, many);
  const creation = usage.take();
  const encrypted = await fill(generator, standby.server, { path: 'scale/encrypt/one', body: plaintext }, many);
  usage.take();
  const revokedMs = await medianRevocationMs(active.server);
  const revocation = usage.take();
  const caughtUpMs = await catchUpMs(parts, active.server, standby);
  if (valueAt(await active.server.call('GET', 'sys/leader'), 'is_self') !== true)
    throw new Error('another node became active during the measurement');
  const followers = size - 1;
  return {
    size,
    'active node at rest, CPU ms/s': atRest.activeUs / 1000 / tookS,
    'each other node at rest, CPU ms/s': atRest.othersUs / followers / 1000 / tookS,
    'active node at rest, bytes/s sent ÷ other nodes': atRest.sentBytes / followers / tookS,
    'create, one connection, p50 ms': alone.p50Ms,
    'create, 16 connections, requests/s': created.perSecond,
    'create, 16 connections, p50 ms': created.p50Ms,
    'create, CPU µs of the active node': creation.activeUs / requests,
    'create, CPU µs of each other node': creation.othersUs / followers / requests,
    'create, bytes sent by the active node ÷ other nodes': creation.sentBytes / followers / requests,
    'encrypt at one standby, requests/s': encrypted.perSecond,
    'encrypt at one standby, CPU µs': encrypted.cpuUs,
    'revoke a token, p50 ms': revokedMs,
    'create and revoke a token, CPU µs of the active node': revocation.activeUs / revocations,
    'create and revoke a token, CPU µs of each other node': revocation.othersUs / followers / revocations,
    [`start of a node that missed ${requests.toLocaleString('en')} creations, ms`]: caughtUpMs,
  };
}

/** Usage of the nodes since the last `take`: CPU time, and bytes that the active node sent to others. */
class Usage {
  readonly #active: ClusterNode;
  readonly #others: readonly ClusterNode[];
  #before: ReturnType<Usage['read']>;

  constructor(active: ClusterNode, others: readonly ClusterNode[]) {
    this.#active = active;
    this.#others = others;
    this.#before = this.read();
  }

  take(): ReturnType<Usage['read']> {
    const [before, now] = [this.#before, this.read()];
    this.#before = now;
    return {
      activeUs: now.activeUs - before.activeUs,
      othersUs: now.othersUs - before.othersUs,
      sentBytes: now.sentBytes - before.sentBytes,
    };
  }

  read(): { readonly activeUs: number; readonly othersUs: number; readonly sentBytes: number } {
    const { url, pids } = this.#active.server;
    const [pid = Number.NaN] = pids;
    return {
      activeUs: usageOf(pids)?.cpuUs ?? Number.NaN,
      othersUs: usageOf(this.#others.flatMap(({ server }) => server.pids))?.cpuUs ?? Number.NaN,
      sentBytes: sentBytes(pid, new URL(url).port),
    };
  }
}

/** Revokes tokens one after the other. The answer of each waits until no node serves the token any longer. */
async function medianRevocationMs(active: ApiServer): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < revocations; i++) {
    const made = await active.call('POST', 'auth/token/create', { policies: ['default'] });
    const begunMs = performance.now();
    await active.call('POST', 'auth/token/revoke', { token: valueAt(made, 'auth.client_token') });
    times.push(performance.now() - begunMs);
  }
  return median(times);
}

/** Ends a standby, creates keys, and returns the time from its start until it serves again. */
async function catchUpMs({ cluster, generator, requests }: Parts, active: ApiServer, standby: ClusterNode): Promise<number> {
  await cluster.end(standby);
  const path = `scale/keys/missed-${cluster.nodes.length}-{n}`;
  await fill(generator, active, { path }, { count: requests, connections: 16 });
  const begunMs = performance.now();
  await cluster.startAgain(standby);
  return performance.now() - begunMs;
}
