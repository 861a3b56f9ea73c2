import { performance } from 'node:perf_hooks';
import { ApiServer, valueAt } from '../http/api-server.ts';
import type { Generator } from '../http/generator.ts';
import { type OwnProcesses, untilHealthy } from '../http/own-processes.ts';
import { usageOf } from '../http/process-usage.ts';
import { fill, heapOf, medianMs, timed } from './measures.ts';
import { type Options, sizesUpTo } from './options.ts';

/** One table: what was measured at each size. Numbers in the units that their names end with. */
export interface Curve {
  readonly size: string;
  readonly points: readonly (Readonly<Record<string, number>> & { readonly size: number })[];
}

export interface Parts {
  readonly own: OwnProcesses;
  readonly generator: Generator;
  readonly options: Options;
  readonly say: (text: string) => void;
}

/** The points of a curve. Reports each at once, because a run takes long. */
class Points {
  readonly all: Curve['points'][number][] = [];
  readonly #say: Parts['say'];

  constructor(say: Parts['say']) {
    this.#say = say;
  }

  push(point: Curve['points'][number]): void {
    this.all.push(point);
    this.#say(JSON.stringify(point));
  }
}

const plaintext = { plaintext: Buffer.alloc(32).toString('base64') };

/** Keys of one mount. The node is started again at each size, to measure that too. */
export async function keysCurve({ own, generator, options, say }: Parts): Promise<Curve> {
  const folder = own.newFolder();
  let server = await own.startDevNode(folder);
  const { connections, requests } = options;
  await server.call('POST', 'sys/mounts/growth', { type: 'transit' });
  await server.call('POST', 'growth/keys/one', {});
  const points = new Points(say);
  let stored = 1;
  for (const size of sizesUpTo(options.keys, [1, 1000, 100_000])) {
    say(`${size} keys`);
    const count = size - stored;
    const name = (n: string): string => (count > 0 ? `k${size}-${n}` : 'one');
    if (count > 0) await fill(generator, server, { path: `growth/keys/${name('{n}')}` }, { count, connections });
    stored = size;
    const load = { count: requests, connections: 16 };
    const one = await fill(generator, server, { path: 'growth/encrypt/one', body: plaintext }, load);
    const each = { path: `growth/encrypt/${name('{n}')}`, body: plaintext, spread: Math.max(1, count) };
    const inTurn = await fill(generator, server, each, load);
    const created = await fill(generator, server, { path: `growth/keys/new-${size}-{n}` }, load);
    const page = await medianMs(server, `growth/keys?list=true&limit=100&after=${count > 0 ? name('5') : 'n'}`);
    const first = await timed(server, 'growth/keys?list=true');
    const again = await timed(server, 'growth/keys?list=true');
    const snapshot = await timed(server, 'sys/storage/raft/snapshot');
    const [memory, heap] = [usageOf(server.pids), await heapOf(server)];
    const start = await restarted(own, folder);
    server = start.server;
    points.push({
      size,
      'encrypt with one key, CPU µs': one.cpuUs,
      'encrypt with each key in turn, CPU µs': inTurn.cpuUs,
      'create, CPU µs': created.cpuUs,
      'page of 100 names, ms': page,
      'first whole list, ms': first.ms,
      'second whole list, ms': again.ms,
      'snapshot, ms': snapshot.ms,
      'snapshot, MiB': snapshot.bytes / 2 ** 20,
      'memory, MiB': mebibytes(memory?.residentBytes),
      'memory without mapped files, MiB': mebibytes(memory?.ownBytes),
      'JavaScript heap and buffers, MiB': heap,
      'start, ms': start.ms,
      'memory without mapped files after the start, MiB': mebibytes(usageOf(server.pids)?.ownBytes),
    });
  }
  await own.endAll();
  return { size: 'keys', points: points.all };
}

/** Versions of one key. */
export async function versionsCurve({ own, generator, options, say }: Parts): Promise<Curve> {
  const server = await own.startDevNode(own.newFolder());
  await server.call('POST', 'sys/mounts/growth', { type: 'transit' });
  await server.call('POST', 'growth/keys/one', {});
  const points = new Points(say);
  const load = { count: options.requests, connections: 16 };
  for (const size of sizesUpTo(options.versions, [1, 100])) {
    say(`${size} versions`);
    const latest = Number(valueAt(await server.call('GET', 'growth/keys/one'), 'data.latest_version'));
    const count = size - latest;
    if (count > 0) await fill(generator, server, { path: 'growth/keys/one/rotate' }, { count, connections: 16 });
    const encrypt = await fill(generator, server, { path: 'growth/encrypt/one', body: plaintext }, load);
    // Few, so that the number of versions stays about the same.
    const few = { count: Math.min(options.requests, 200), connections: 16 };
    const rotate = await fill(generator, server, { path: 'growth/keys/one/rotate' }, few);
    const { bytes } = await timed(server, 'growth/keys/one');
    points.push({
      size,
      'rotate one key, CPU µs': rotate.cpuUs,
      'response of a rotation, bytes': bytes,
      'encrypt, CPU µs': encrypt.cpuUs,
      'memory without mapped files, MiB': mebibytes(usageOf(server.pids)?.ownBytes),
      'JavaScript heap and buffers, MiB': await heapOf(server),
    });
  }
  await own.endAll();
  return { size: 'versions', points: points.all };
}

/** Tokens. */
export async function tokensCurve({ own, generator, options, say }: Parts): Promise<Curve> {
  const folder = own.newFolder();
  let server = await own.startDevNode(folder);
  const points = new Points(say);
  const load = { count: options.requests, connections: 16 };
  const create = { path: 'auth/token/create', body: { policies: ['default'], ttl: '24h' } };
  let stored = 1;
  for (const size of sizesUpTo(options.tokens, [1, 1000])) {
    say(`${size} tokens`);
    if (size > stored) await fill(generator, server, create, { count: size - stored, connections: options.connections });
    const created = await fill(generator, server, create, load);
    stored = size + options.requests;
    const made = await server.call('POST', 'auth/token/create', create.body);
    const { url, pids } = server;
    const holder = new ApiServer({ name: 'ours', url, pids, token: String(valueAt(made, 'auth.client_token')) });
    const renewed = await fill(generator, holder, { path: 'auth/token/renew-self' }, load);
    const [memory, heap] = [usageOf(server.pids), await heapOf(server)];
    const start = await restarted(own, folder);
    server = start.server;
    points.push({
      size,
      'create, CPU µs': created.cpuUs,
      'renew-self of one token, CPU µs': renewed.cpuUs,
      'memory without mapped files, MiB': mebibytes(memory?.ownBytes),
      'JavaScript heap and buffers, MiB': heap,
      'start, ms': start.ms,
    });
  }
  await own.endAll();
  return { size: 'tokens', points: points.all };
}

const mebibytes = (bytes = Number.NaN): number => bytes / 2 ** 20;

/** Ends the node and starts it again. Returns it with the time until it is active. */
async function restarted(own: OwnProcesses, folder: string): Promise<{ readonly server: ApiServer; readonly ms: number }> {
  await own.endAll();
  const begunMs = performance.now();
  const server = await own.startDevNode(folder);
  await untilHealthy(server);
  return { server, ms: performance.now() - begunMs };
}
