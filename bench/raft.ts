// `node bench/raft.ts [--seconds 3] [--only load|log|snapshot]`: measures consensus with real segment logs and syncs,
// in three processes on the loopback interface over plain TCP. Prints Markdown to stdout and its progress to stderr.
import { loadavg } from 'node:os';
import { parseArgs } from '../scripts/parse-args.ts';
import { Cluster } from './raft/cluster.ts';
import type { Load, LoadRun } from './raft/orders.ts';
import { oneDecimal, type Row, report, whole } from './raft/report.ts';
import { percentile } from './statistics.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    only: { type: 'string' },
  },
});
const runMs = 1000 * Number(values.seconds);
const entryBytes = 200;
const behindEntries = 100_000;
const stateBytes = 40 * 10 ** 6;
const transfers = 10;
const deadlineMs = 240_000;

const loadBefore = loadavg();
const rows: Row[] = [];
const remarks: string[] = [
  `Entries of ${entryBytes} bytes, fsync on, closed-loop clients inside the process that is measured, no TLS; runs of ${runMs / 1000} s.`,
  'Catch-up counts payload only, 1 MB = 10^6 bytes, from the first entry that arrives to the last one that is on the disk.',
];
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
setTimeout(() => {
  console.error('The bench gave up: a condition that it waits for did not occur.');
  process.exit(1);
}, deadlineMs).unref();

const questions: Readonly<Record<string, () => Promise<void>>> = {
  load: () =>
    withCluster({}, async (cluster) => {
      await measureWrites(cluster);
      await measureReads(cluster);
      await measureTransfers(cluster);
    }),
  // A log without compaction, so that a member can lack many entries and still catch up from the log.
  log: () => withCluster({ limits: { compactAfterEntries: 10 ** 7, compactAfterBytes: 2 ** 40 } }, measureCatchUp),
  // A log that is compacted at once, so that a member that was away needs the whole state.
  snapshot: async () => {
    for (const bytes of [entryBytes, 4096]) {
      const limits = { compactAfterEntries: 10, keepTrailingEntries: 10 };
      await withCluster({ limits, records: true }, (cluster) => measureSnapshot(cluster, bytes));
    }
  },
};
await withCluster({}, async () => undefined); // fills the compile cache for the measured members
for (const [name, measure] of Object.entries(questions)) if (name === (values.only ?? name)) await measure();
console.log(report('Consensus', rows, remarks, loadBefore));

async function withCluster(
  limits: Parameters<typeof Cluster.start>[0],
  task: (cluster: Cluster) => Promise<void>,
): Promise<void> {
  const cluster = await Cluster.start(limits);
  try {
    await task(cluster);
  } finally {
    await cluster.end();
  }
}

function add(measure: string, result: string): void {
  rows.push({ measure, result });
  console.error(`${measure}: ${result}`);
}

/** Returns the rate of the run; prints the answers that were not successful. */
function rate({ done, failed, ms }: LoadRun): string {
  return `${whole((1000 * done) / ms)}/s${failed > 0 ? ` (${whole(failed)} failed)` : ''}`;
}

function load(clients: number, ms = runMs): Load {
  return { clients, ms, requests: 10 ** 9 };
}

function latencies({ p50Ms, p99Ms }: LoadRun): string {
  return `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`;
}

async function measureWrites(cluster: Cluster): Promise<void> {
  const { member } = await cluster.leader();
  await member.ask('write', { ...load(64, 1000), entryBytes });
  for (const clients of [1, 64, 256]) {
    const run = await member.ask('write', { ...load(clients), entryBytes });
    add(`committed writes, ${clients} client${clients > 1 ? 's' : ''}`, `${rate(run)}, ${latencies(run)}`);
  }
}

async function measureReads(cluster: Cluster): Promise<void> {
  const { member } = (await cluster.settled()).lead;
  add('lease reads, 256 clients', rate(await member.ask('leaseRead', load(256, runMs / 2))));
  const run = await member.ask('readIndex', load(256));
  add('ReadIndex reads on the leader, 256 clients', `${rate(run)}, ${latencies(run)}`);
}

async function measureTransfers(cluster: Cluster): Promise<void> {
  const tookMs: number[] = [];
  for (let i = 0; i < transfers; i++) {
    const { lead } = await cluster.settled();
    const next = cluster.leader({ above: lead.term });
    const startedMs = performance.now();
    const outcome = await lead.member.ask('transfer', null);
    if (outcome.kind !== 'resigned') remarks.push(`Transfer ${i + 1} was ${JSON.stringify(outcome)}.`);
    tookMs.push((await next).atMs - startedMs);
  }
  add(`planned transfer to the first write on the new leader, ${transfers} times`, spread(tookMs));
}

function spread(tookMs: readonly number[]): string {
  const [p50, p99, longest] = [percentile(tookMs, 50), percentile(tookMs, 99), Math.max(...tookMs)].map(whole);
  return `p50 ${p50} ms, p99 ${p99} ms, longest ${longest} ms`;
}

async function measureCatchUp(cluster: Cluster): Promise<void> {
  for (const bytes of [entryBytes, 4096]) {
    const { lead } = await cluster.settled();
    const [away, ...stay] = cluster.members.filter(({ id }) => id !== lead.member.id);
    if (away === undefined) throw new Error('there is no follower');
    await away.kill();
    const requests = Math.round((behindEntries * entryBytes) / bytes);
    await lead.member.ask('write', { clients: 256, ms: 60_000, requests, entryBytes: bytes });
    const target = (await cluster.settled(stay)).status.lastIndex;
    const startedMs = performance.now();
    const back = await cluster.restart(away);
    const { entries, ms } = await back.ask('catchUp', { target });
    const wholeMs = performance.now() - startedMs;
    const megabytes = (entries * bytes) / 10 ** 6;
    add(
      `catch-up by log, ${whole(entries)} entries of ${bytes} bytes`,
      `${oneDecimal((1000 * megabytes) / ms)} MB/s (${oneDecimal(megabytes)} MB in ${whole(ms)} ms; ` +
        `${whole(wholeMs)} ms from the start of the process)`,
    );
  }
}

/** Sends the state of a leader to an empty member. */
async function measureSnapshot(cluster: Cluster, bytes: number): Promise<void> {
  const { lead } = await cluster.settled();
  const [away, ...stay] = cluster.members.filter(({ id }) => id !== lead.member.id);
  if (away === undefined) throw new Error('there is no follower');
  await away.kill();
  const count = Math.round(stateBytes / bytes);
  await lead.member.ask('fill', { count, bytes });
  await cluster.settled(stay);
  const back = await cluster.restart(away);
  const { ms, bytes: streamed } = await back.ask('installed', null);
  const megabytes = (count * bytes) / 10 ** 6;
  add(
    `catch-up by snapshot, ${whole(count)} records of ${bytes} bytes`,
    `${oneDecimal((1000 * megabytes) / ms)} MB/s (${oneDecimal(megabytes)} MB in ${whole(ms)} ms; ` +
      `the stream had ${oneDecimal(streamed / 10 ** 6)} MB)`,
  );
}
