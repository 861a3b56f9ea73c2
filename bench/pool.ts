// `npm run bench:pool`: measures how long syncs of a file take while signatures and password hashes run on the thread pool, at the limits
// of a node with gateways, compared with an idle pool. See docs/benchmarks.md.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Passwords } from '../packages/access/src/auth/passwords.ts';
import { divideThreadPool, signNatively } from '../packages/transit-engine/src/key-pairs/native-signature.ts';
import { runCommand } from './command.ts';
import { percentile } from './raft/percentile.ts';

const usage = `npm run bench:pool -- [options]

  --gateways N   threads that sign beside the main thread; default 1
  --rounds N     rounds of one idle and one busy measurement; default 5
  --syncs N      syncs in each measurement; default 300`;

/** More requests than the limits let begin, so that the limits are reached all the time. */
const requestsMax = 16;

interface Load {
  /** 1 while signatures and hashes are wanted. */
  readonly wanted: Int32Array<SharedArrayBuffer>;
  readonly threads: number;
}

if (isMainThread) await runCommand('bench:pool', usage, main);
else signWhileWanted(workerData as Load);

async function main(args: readonly string[]): Promise<void> {
  const text = { type: 'string' } as const;
  const options = { gateways: { ...text, default: '1' }, rounds: { ...text, default: '5' }, syncs: { ...text, default: '300' } };
  const { values } = parseArgs({ args: [...args], options });
  const [gateways, rounds, syncs] = [values.gateways, values.rounds, values.syncs].map(Number) as [number, number, number];
  const load: Load = { wanted: new Int32Array(new SharedArrayBuffer(4)), threads: 1 + gateways };
  const others = Array.from({ length: gateways }, () => new Worker(new URL(import.meta.url), { workerData: load }));
  signWhileWanted(load);
  hashWhileWanted(load);
  const folder = mkdtempSync(join(tmpdir(), 'transitd-pool-'));
  try {
    const [idle, busy]: [number[], number[]] = [[], []];
    await syncTimes(folder, syncs);
    for (let round = 0; round < rounds; round += 1) {
      idle.push(...(await syncTimes(folder, syncs)));
      Atomics.store(load.wanted, 0, 1);
      Atomics.notify(load.wanted, 0);
      busy.push(...(await syncTimes(folder, syncs)));
      Atomics.store(load.wanted, 0, 0);
    }
    report({ idle, busy }, gateways);
  } finally {
    rmSync(folder, { recursive: true });
    await Promise.all(others.map((other) => other.terminate()));
  }
  process.exit(0);
}

/** Returns the times of writes of 4 KiB that are synced one after the other, in milliseconds. */
async function syncTimes(folder: string, count: number): Promise<number[]> {
  const file = await open(join(folder, 'log'), 'w');
  const times: number[] = [];
  for (let n = 0; n < count; n += 1) {
    await file.write(randomBytes(4096));
    const begunMs = performance.now();
    await file.datasync();
    times.push(performance.now() - begunMs);
  }
  await file.close();
  return times;
}

function signWhileWanted({ wanted, threads }: Load): void {
  divideThreadPool(threads);
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4096 });
  whileWanted(wanted, () => signNatively(privateKey, randomBytes(32), { hash: 'sha256', isSlow: true }));
}

function hashWhileWanted({ wanted }: Load): void {
  const passwords = new Passwords();
  whileWanted(wanted, () => passwords.hash('password'));
}

/** Keeps as many tasks in progress as there are requests, while they are wanted. */
function whileWanted(wanted: Load['wanted'], task: () => Promise<unknown>): void {
  const again = async (): Promise<void> => {
    for (;;) {
      const { async: waits, value } = Atomics.waitAsync(wanted, 0, 0);
      if (waits) await value;
      await task();
    }
  };
  for (let n = 0; n < requestsMax; n += 1) void again();
}

function report({ idle, busy }: { readonly idle: number[]; readonly busy: number[] }, gateways: number): void {
  const pool = process.env['UV_THREADPOOL_SIZE'] ?? '4';
  const row = (name: string, of: (times: number[]) => number): string =>
    `| ${name} | ${of(idle).toFixed(2)} | ${of(busy).toFixed(2)} | ${(of(busy) / of(idle)).toFixed(2)} |`;
  const machine = `${availableParallelism()} cores, load average ${loadavg()[0]?.toFixed(1)}`;
  console.log(`${gateways} gateways, ${pool} threads in the pool, ${machine}\n`);
  console.log('| time of a sync, ms | idle pool | at the limits | ratio |\n| --- | ---: | ---: | ---: |');
  for (const percent of [50, 90, 99]) console.log(row(`p${percent}`, (times) => percentile(times, percent)));
}
