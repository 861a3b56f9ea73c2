// `node scripts/cluster/chaos-sites.ts [--rounds 20] [--seconds 5] [--clients 4] [--delay 0] [--loss 0]`: two clusters of three real
// processes. In each round the primary is killed as a whole under load, its secondary is promoted, and the former primary follows it.
// Reports what was lost, and figures.
import { setTimeout as delay } from 'node:timers/promises';
import { percentile } from '../../bench/statistics.ts';
import type { LiveCluster } from '../../test/cluster/harness/live-cluster.ts';
import { callerAddress, codesOf, formSite, SiteLoad, TwoSites } from '../../test/cluster/harness/two-sites.ts';
import { until } from '../../test/cluster/harness/until.ts';
import { parseArgs } from '../parse-args.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '5' },
    clients: { type: 'string', default: '4' },
    /** Of the link between the clusters, each way, in milliseconds. */
    delay: { type: 'string', default: '0' },
    /** Share of the segments that the link loses, in percent: the proxy delays what follows them as TCP does. */
    loss: { type: 'string', default: '0' },
  },
});
const { rounds, seconds, clients, delay: delayMs, loss: lossPercent } = numbers(values);
function numbers<K extends string>(texts: Readonly<Record<K, string>>): Readonly<Record<K, number>> {
  return Object.fromEntries(Object.entries<string>(texts).map(([name, text]) => [name, Number(text)])) as Record<K, number>;
}
const whole = (ms: number): string => `${Math.round(ms)} ms`;
const sites: LiveCluster[] = [];
const endAll = async (): Promise<void> => {
  for (const site of sites) await site.end();
};
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void endAll().then(() => process.exit(130)));

interface Round {
  readonly writesPerSecond: number;
  readonly lagMs: readonly number[];
  readonly promotionMs: number;
  readonly returnMs: number;
  readonly lost: number;
  readonly faults: readonly string[];
}

try {
  process.exitCode = await run();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await endAll();
}

async function run(): Promise<number> {
  const names = ['east', 'west'];
  for (const _ of names) sites.push(await formSite(3));
  const [first, second] = sites as [LiveCluster, LiveCluster];
  const both = new TwoSites(first);
  const alone = await loaded(both, first, { prefix: 'alone', sample: async () => undefined });
  await both.control(first, 'primary/enable');
  await both.follow(first, second, 'west');
  if (delayMs > 0) for (const site of sites) site.guestLink(callerAddress, { delayMs, loss: lossPercent / 100 });
  const played: Round[] = [];
  for (let number = 1; number <= rounds; number++) {
    const [primary, secondary] = number % 2 === 1 ? [first, second] : [second, first];
    const round = await play(both, { primary, secondary, number });
    played.push(round);
    const { lost, promotionMs, returnMs, writesPerSecond, faults } = round;
    console.log(
      `round ${number}: ${Math.round(writesPerSecond)} writes/s, ${lost} acknowledged writes lost, ` +
        `first write ${whole(promotionMs)} after the promotion was requested, equal again after ${whole(returnMs)}`,
    );
    for (const fault of faults) console.log(`FAULT: ${fault}`);
  }
  return report(played, alone);
}

async function play(
  both: TwoSites,
  { primary, secondary, number }: { readonly primary: LiveCluster; readonly secondary: LiveCluster; readonly number: number },
): Promise<Round> {
  const faults: string[] = [];
  const show = async (step: string): Promise<void> => {
    const codes = await Promise.all([primary, secondary].map(codesOf));
    console.log(`  ${step}: ${codes.map((site) => site.map((code) => code ?? 'down').join(' ')).join(' | ')}`);
  };
  await both.reach(primary, [200, 473]);
  await both.equal(primary, secondary);
  await show('primary | secondary');
  const lagMs: number[] = [];
  const { load, writesPerSecond } = await loaded(both, primary, {
    prefix: `r${number}`,
    keepRunning: true,
    sample: async () => {
      const lag = (await both.status(primary)).at('data.secondaries.0.lag_ms');
      if (typeof lag === 'number') lagMs.push(lag);
    },
  });
  await both.lose(primary);
  await load.stop();
  const startMs = performance.now();
  const promoted = await until('the promotion is decided', async () => {
    const answer = await both.control(secondary, 'secondary/promote', { force: true });
    return answer.status !== 503 && answer; // an election, or a transfer of leadership
  });
  if (promoted.status !== 200) throw new Error(`the promotion was refused: ${promoted.text}`);
  const node = await both.active(secondary);
  await until('the promoted cluster answers a write', async () => {
    const { status } = await node.ask('POST', `transit/keys/after-${number}`, { token: both.rootToken, body: {} });
    return status < 300;
  });
  const promotionMs = performance.now() - startMs;
  await both.reach(secondary, [200, 473]);
  await show('lost | promoted');

  const present = await both.keys(secondary);
  const newest = Math.max(0, ...load.acknowledged.filter(({ name }) => present.has(name)).map(({ index }) => index));
  const lost = load.acknowledged.filter(({ name }) => !present.has(name));
  const early = lost.filter(({ index }) => index < newest);
  if (early.length > 0) faults.push(`${early.length} writes before the newest one that was replicated are missing`);
  const known = Number(promoted.at('data.primary_position') ?? 0) - Number(promoted.at('data.position'));
  if (known > Number(promoted.at('data.missing'))) faults.push('the promotion reported fewer missing entries than it knew of');
  console.log(
    `  reported: ${promoted.at('data.missing')} entries missing at least, lag ${promoted.at('data.lag_ms')} ms; ` +
      `lost: ${lost.length} of ${load.acknowledged.length}`,
  );

  await both.restore(primary);
  await show('returned | promoted');
  const returnedMs = performance.now();
  await both.follow(secondary, primary, `site-${number}`);
  await both.equal(secondary, primary);
  const returnMs = performance.now() - returnedMs;
  await show('secondary | primary');
  return { writesPerSecond, lagMs, promotionMs, returnMs, lost: lost.length, faults };
}

async function loaded(
  both: TwoSites,
  site: LiveCluster,
  {
    prefix,
    sample,
    keepRunning = false,
  }: { readonly prefix: string; readonly sample: () => Promise<void>; readonly keepRunning?: boolean },
): Promise<{ readonly load: SiteLoad; readonly writesPerSecond: number }> {
  const load = new SiteLoad(await both.active(site), { clients, prefix, token: both.rootToken });
  site.bears(load);
  const startMs = performance.now();
  while (performance.now() - startMs < seconds * 1000) {
    await sample();
    await delay(50);
  }
  const writesPerSecond = (load.acknowledged.length * 1000) / (performance.now() - startMs);
  if (!keepRunning) await load.stop();
  return { load, writesPerSecond };
}

/** Prints the figures. Returns the exit code. */
function report(played: readonly Round[], alone: { readonly writesPerSecond: number }): number {
  const all = (of: (round: Round) => readonly number[]): readonly number[] => played.flatMap(of);
  const [lag, promotion, back, rate] = [
    all(({ lagMs }) => lagMs),
    all(({ promotionMs }) => [promotionMs]),
    all(({ returnMs }) => [returnMs]),
    all(({ writesPerSecond }) => [writesPerSecond]),
  ];
  const share = percentile(rate, 50) / alone.writesPerSecond;
  console.log(`\n${played.length} rounds, ${clients} clients, delay ${delayMs} ms each way, loss ${lossPercent} %`);
  console.log(`lag: p50 ${whole(percentile(lag, 50))}, p99 ${whole(percentile(lag, 99))}, ${lag.length} samples`);
  console.log(
    `promotion to the first answered write: p50 ${whole(percentile(promotion, 50))}, max ${whole(Math.max(...promotion))}`,
  );
  console.log(
    `writes: ${Math.round(alone.writesPerSecond)}/s alone, p50 ${Math.round(percentile(rate, 50))}/s with a secondary ` +
      `on the same machine (${Math.round(share * 100)} %)`,
  );
  console.log(`former primary equal again: p50 ${whole(percentile(back, 50))}, max ${whole(Math.max(...back))}`);
  const faults = played.flatMap((round) => round.faults);
  const lost = played.reduce((sum, round) => sum + round.lost, 0);
  console.log(faults.length === 0 ? `only newest writes were lost: ${lost} in all rounds` : `${faults.length} faults, see above`);
  return faults.length === 0 ? 0 : 1;
}
