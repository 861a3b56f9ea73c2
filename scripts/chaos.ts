// `npm run chaos [-- --minutes 2] [--seed 1] [--size 3] [--clients 8] [--storage etcd]`: injects faults of processes, links, disks, clocks
// and etcd, drawn from the seed, into real processes under load. It checks every acknowledged write on every node, the linearizability of
// every key's history, and that revoked tokens work nowhere. Exit code 1 if something is lost, stale or unexplained.
import { setTimeout as delay } from 'node:timers/promises';
import { percentile } from '../bench/statistics.ts';
import { ActiveWatch } from '../test/chaos/active-watch.ts';
import { Clocks } from '../test/chaos/clock-faults.ts';
import { detachAll, diskFaults } from '../test/chaos/disk-faults.ts';
import { detachFromEtcd, etcdFaults, etcdOutages } from '../test/chaos/etcd-faults.ts';
import { type Round, schedule } from '../test/chaos/schedule.ts';
import { TokenWorkload } from '../test/chaos/token-workload.ts';
import { linkFaults, processFaults } from '../test/cluster/harness/faults.ts';
import { LiveCluster } from '../test/cluster/harness/live-cluster.ts';
import { losses } from '../test/cluster/harness/survivors.ts';
import { Workload } from '../test/cluster/harness/workload.ts';
import { parseArgs } from './parse-args.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: '1' },
    size: { type: 'string', default: '3' },
    clients: { type: 'string', default: '8' },
    storage: { type: 'string', default: 'raft' },
  },
});
const { storage } = values;
if (storage !== 'raft' && storage !== 'etcd') throw new Error('--storage is raft or etcd');
const [minutes, seed, size, clients] = [values.minutes, values.seed, values.size, values.clients].map(Number) as [
  number,
  number,
  number,
  number,
];
/** After this time the run checks everything and continues with new keys, because the checkers' work grows faster than the history. */
const epochMs = 60_000;
const whole = (ms: number): string => `${Math.round(ms)} ms`;

/** Results so far. */
const found: string[] = [];
/** For each kind of fault: time until the first successful write through an unaffected node. */
const tookMs = new Map<string, number[]>();
const totals = { rounds: 0, faults: 0, acknowledged: 0, calls: 0, histories: 0, ciphertexts: 0, readElsewhere: 0 };
const troubles: string[] = [];
/** The round that is played, for the report of a failure. */
let underway = '';
/** How often each fault struck. */
const strikes = new Map<string, number>();

const clocks = new Clocks();
const cluster = await LiveCluster.formed({
  size,
  storage,
  workers: 'auto',
  elections: 'shipped',
  env: (name) => clocks.env(name),
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end().then(() => process.exit(130)));
try {
  process.exitCode = await run();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  console.error(cluster.tails());
  console.error(underway);
  console.error(
    `seed ${seed}: replay with npm run chaos -- --minutes ${minutes} --seed ${seed} --size ${size} --storage ${storage}`,
  );
  process.exitCode = 1;
} finally {
  await end();
}
// The link proxies reset sockets that are shutting down. Node 24 may spin forever when it frees such sockets, so exit without that.
process.exit();

async function end(): Promise<void> {
  await detachAll();
  await detachFromEtcd();
  await cluster.end();
  clocks.remove();
}

async function run(): Promise<number> {
  const killed = processFaults.slice(0, 1);
  const common = [...processFaults, ...linkFaults, clocks.jump(20), clocks.jump(-20)];
  const faults = [...common, ...(storage === 'etcd' ? etcdFaults : diskFaults)];
  const rounds = schedule({ seed, size, faults, total: [...killed, ...(storage === 'etcd' ? etcdOutages : linkFaults)] });
  // A former leader of Raft calls itself active until it has heard of its successor; it only answers nothing from its state.
  const active = storage === 'etcd' ? new ActiveWatch(cluster) : undefined;
  const tokens = await TokenWorkload.start(cluster, { seed });
  const endMs = performance.now() + minutes * 60_000;
  for (let epoch = 1; performance.now() < endMs; epoch++) {
    const workload = await Workload.start(cluster, { clients, pauseMs: 10, seed: seed + epoch, label: `e${epoch}-` });
    const until = Math.min(endMs, performance.now() + epochMs);
    while (performance.now() < until) await play(rounds.next().value, workload);
    await cluster.settled();
    await workload.stop();
    const lost = await losses(cluster, workload);
    for (const loss of lost) console.log(`LOST: ${loss}`);
    found.push(...lost);
    totals.acknowledged += workload.acknowledged;
    totals.calls += workload.history.size;
    totals.histories += workload.history.keys.length;
    totals.ciphertexts += workload.encrypted.length;
    totals.readElsewhere += workload.readElsewhere;
    troubles.push(workload.troublesText);
    console.log(`epoch ${epoch}: ${workload.acknowledged} acknowledged writes checked, ${lost.length} losses found`);
  }
  await tokens.stop();
  found.push(...(await tokens.conclude()));
  await active?.stop();
  found.push(...(active?.claims.violations ?? []));
  return report(tokens);
}

/** One round: inject the faults, wait until clients are served again, remove the faults, wait until the cluster is healthy. */
async function play(round: Round, workload: Workload): Promise<void> {
  const leader = await cluster.settled();
  const standbys = [...cluster.others(leader)];
  const struck = round.strikes.map(({ fault, at }) => ({
    fault,
    victim: (at === 'the active node' ? leader : standbys.shift()) ?? leader,
  }));
  const what = struck.map(({ fault, victim }) => `${victim.name} ${fault.what}`).join(', ');
  underway = `round ${totals.rounds + 1}: ${what}`;
  await Promise.all(struck.map(({ fault, victim }) => fault.strike(cluster, victim)));
  const struckMs = performance.now();
  totals.rounds += 1;
  totals.faults += struck.length;
  for (const { what } of new Set(struck.map(({ fault }) => fault))) strikes.set(what, (strikes.get(what) ?? 0) + 1);
  let served = '';
  if (round.kind === 'minority') {
    const { doneMs, node } = await workload.nextWrite(cluster.others(...struck.map(({ victim }) => victim)));
    served = `, first write through ${node.name} after ${whole(doneMs - struckMs)}`;
    for (const { fault, victim } of struck) {
      const name = `${victim === leader ? 'active' : 'standby'} ${fault.what}`;
      tookMs.set(name, [...(tookMs.get(name) ?? []), doneMs - struckMs]);
    }
  }
  await delay(round.lastMs);
  await Promise.all(struck.map(({ fault, victim }) => fault.mend(cluster, victim)));
  const mendedMs = performance.now();
  await cluster.settled();
  console.log(`${totals.rounds}: ${what}${served}, healthy ${whole(performance.now() - mendedMs)} after the end of the faults`);
}

/** Prints the results. Returns the exit code. */
function report(tokens: TokenWorkload): number {
  console.log('\n| fault | rounds | first write, p50 | longest |\n|---|---|---|---|');
  for (const [name, took] of [...tookMs].toSorted(([a], [b]) => a.localeCompare(b)))
    console.log(`| ${name} | ${took.length} | ${whole(percentile(took, 50))} | ${whole(Math.max(...took))} |`);
  console.log(`\nRefusals and unknown outcomes that clients got:\n${merged(troubles)}\n`);
  const { rounds, faults, acknowledged, calls, histories, ciphertexts, readElsewhere } = totals;
  console.log(`seed ${seed}, ${size} nodes on ${storage}, ${minutes} minutes: ${faults} faults in ${rounds} rounds`);
  console.log(
    `${acknowledged} writes acknowledged, ${calls} calls in ${histories} histories, ${ciphertexts} ciphertexts decrypted, ${readElsewhere} new keys read elsewhere by their index`,
  );
  console.log(`${tokens.created} tokens created, ${tokens.revoked} revoked, ${tokens.uses} uses`);
  console.log(`rounds by fault: ${[...strikes].map(([what, count]) => `${count} × ${what}`).join(', ')}`);
  for (const line of found) console.log(`FOUND: ${line}`);
  // A 500 is a bug of the service that no history reveals, so print the log line that shows its cause.
  for (const { name, log } of cluster.nodes)
    for (const line of log.split('\n').filter((text) => text.includes('"internal error"')))
      console.log(`LOGGED by ${name}: ${line}`);
  const { broken } = cluster;
  for (const { name } of broken) console.log(`FOUND: broken invariant on ${name}`);
  const faultless = found.length + broken.length === 0;
  if (faultless) console.log('no acknowledged write is lost, every history is linearizable, no revoked token was served');
  return faultless ? 0 : 1;
}

/** Adds up the lines `N × text` of several workloads, most frequent first. */
function merged(texts: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const line of texts.flatMap((text) => text.split('\n'))) {
    const match = /^(\d+) × (.*)$/.exec(line);
    if (match !== null) counts.set(match[2] ?? '', (counts.get(match[2] ?? '') ?? 0) + Number(match[1]));
  }
  return [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .map(([text, count]) => `${count} × ${text}`)
    .join('\n');
}
