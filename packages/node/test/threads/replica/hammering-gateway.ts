// A gateway with a cache of a few records. It changes and reads them as fast as it can, beside another gateway that does the same.
import { setImmediate as turn } from 'node:timers/promises';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { ReplicaProxy } from '../../../src/threads/replica/replica-proxy.ts';
import type { NodeMemory } from '../../../src/threads/shared/node-memory.ts';

export interface GatewayWork {
  readonly memory: NodeMemory;
  readonly port: MessagePort;
  readonly row: number;
  readonly start: number;
  /** For each record, the newest version whose commit was answered. All gateways share it, as clients that talk to each other. */
  readonly answered: Int32Array<SharedArrayBuffer>;
  readonly rounds: number;
}

export interface GatewayResult {
  /** Number of stale reads: a newer version than the one that was used had been answered before the read began. */
  readonly missed: number;
  readonly commits: number;
  /** How often the gateway had to drop everything because it lagged. */
  readonly dropped: number;
}

interface Entry {
  readonly version: number;
  readonly revision: number;
}

const { memory, port, row, start, answered, rounds }: GatewayWork = workerData;
const proxy = new ReplicaProxy({ port, memory, row, start, clusterId: 'memory' });
const cache = new Map<string, Entry>();
const loads = new Set<{ readonly path: string; hasChanged: boolean }>();
let [missed, commits, dropped] = [0, 0, 0];

proxy.watch('', (changes) => {
  const paths = changes === 'everything' ? undefined : new Set(changes.map(({ path }) => path));
  if (paths === undefined) dropped += 1;
  for (const load of loads) if (paths?.has(load.path) !== false) load.hasChanged = true;
  for (const path of paths ?? [...cache.keys()]) cache.delete(path);
});

for (let round = 0; round < rounds; round++) {
  const record = round % answered.length;
  await request(record, round % 7 === row);
  if (round % 16 === 0) await turn(); // otherwise the changes are only found by draining
}
const result: GatewayResult = { missed, commits, dropped };
parentPort?.postMessage(result);

async function request(record: number, isChange: boolean): Promise<void> {
  const known = Atomics.load(answered, record);
  const { version, revision } = await entryOf(String(record));
  if (version < known) missed += 1;
  if (!isChange) return;
  const write = { path: String(record), value: Buffer.from(String(version + 1)) };
  const { outcome } = await proxy.commit({ conditions: [{ path: write.path, revision }], writes: [write] });
  proxy.drain();
  if (outcome === 'conflict') return;
  commits += 1;
  // No other gateway commits this version of the record, and later versions are answered later, by whichever gateway.
  for (let before = Atomics.load(answered, record); before <= version; before = Atomics.load(answered, record))
    if (Atomics.compareExchange(answered, record, before, version + 1) === before) return;
}

/** Drains, and returns the record from the cache or the main thread. */
async function entryOf(path: string): Promise<Entry> {
  for (;;) {
    proxy.drain();
    const cached = cache.get(path);
    if (cached !== undefined) return cached;
    const load = { path, hasChanged: false };
    loads.add(load);
    const record = await proxy.get(path);
    proxy.drain();
    loads.delete(load);
    if (load.hasChanged) continue;
    const text = Buffer.from(record?.value ?? []).toString();
    cache.set(path, { version: Number(text), revision: record?.revision ?? 0 });
  }
}
