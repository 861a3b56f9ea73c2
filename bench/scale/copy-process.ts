// Reads a state of so many keys into the copy of a node on etcd, and sends the costs to its parent.
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { type Etcd, type EtcdRangeRequest, EtcdReplica, type EtcdRow } from '@transitd/storage-etcd';

/** Two records for each key, as the transit engine writes them. Their values begin with seven bytes of the engine over etcd. */
const rowsPerKey = 2;
const valueBytes = 280;
const valueHead = Buffer.from([1, 0, 0, 0, 0, 0, 0]);

const keys = Number(process.argv[2]);
const revision = 1 + keys;
const mount = 'bench/r/transit/0b6c4a2e-5d1f-4c83-9a57-000000000001';

const rowAt = (number: number): EtcdRow => {
  const digits = String(number % keys).padStart(8, '0');
  const key = number < keys ? `${mount}/key/name-of-a-key-${digits}` : `${mount}/ver/0b6c4a2e-5d1f-4c83-9a57-0000${digits}/1`;
  const value = Buffer.concat([valueHead, Buffer.alloc(valueBytes)]);
  return { key, value, createRevision: 1, modRevision: 1, version: 1 };
};

let next = 0;
async function range({ end, limit = 0 }: EtcdRangeRequest): ReturnType<Etcd['range']> {
  await pause(0);
  if (end === undefined) return { revision, rows: [], more: false };
  const rows = Array.from({ length: Math.min(limit, rowsPerKey * keys - next) }, (_, at) => rowAt(next + at));
  next += rows.length;
  return { revision, rows, more: next < rowsPerKey * keys };
}

const etcd: Etcd = {
  range,
  txn: async () => ({ revision, succeeded: true, answers: [] }),
  watch: async function* (_request, signal) {
    yield { kind: 'created', revision };
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  },
  grantLease: async (ttlSeconds) => ({ id: 1n, ttlSeconds }),
  keepAlive: async () => 10,
  revokeLease: async () => undefined,
  close: () => undefined,
};

const delays = monitorEventLoopDelay({ resolution: 5 });
globalThis.gc?.();
const before = process.memoryUsage().rss;
delays.enable();
const [begunMs, begunCpu] = [performance.now(), process.cpuUsage()];
const replica = await EtcdReplica.open({ etcd, prefix: 'bench', nodeId: 1, mayLead: false });
const [endedMs, { user, system }] = [performance.now(), process.cpuUsage(begunCpu)];
await pause(100); // the delay of a task that has just ended is noted when the next one runs
delays.disable();
globalThis.gc?.();
process.send?.({
  'time, ms': endedMs - begunMs,
  'CPU time, ms': (user + system) / 1000,
  'longest turn of the event loop, ms': delays.max / 1e6,
  'memory for each key, bytes': (process.memoryUsage().rss - before) / keys,
});
await replica.close();
