// `npm run sim -- --seed N [--profile core|driver|storage] [--events N] [--trace]`: plays one seed, always in the same way. `--extra` adds
// the faults of the second stream, `--count N` plays N seeds on all cores, starting with that one. `--file F` plays a recorded run.
import { readFileSync } from 'node:fs';
import { Coverage, formatLine, type SimConfig } from '../packages/raft-sim/src/cluster/index.ts';
import { parseArgs } from './parse-args.ts';
import { ownPackages, playerOn } from './sim-player.ts';
import { playSeeds, profileNamed, seedsFrom } from './sim-pool.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    profile: { type: 'string', default: 'core' },
    events: { type: 'string', default: '10000' },
    count: { type: 'string', default: '1' },
    file: { type: 'string' },
    extra: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  },
});
const profile = profileNamed(values.profile);
const [seed, events, count] = [Number(values.seed), Number(values.events), Number(values.count)];
const job = { profile, events, extra: values.extra };

if (count > 1) await playMany();
else await playOne();

async function playOne(): Promise<void> {
  const { configOf, play } = await playerOn(ownPackages);
  const config: SimConfig =
    values.file === undefined ? configOf({ ...job, seed }) : JSON.parse(readFileSync(values.file, 'utf8')).config;
  const result = await play(config, values.trace ? (line) => console.log(formatLine(line)) : undefined);
  console.log(
    `seed ${config.seed} ${config.profile}: ${result.events} events, ${result.virtualMs.toFixed(0)} ms, hash ${result.hash}`,
  );
  if (result.failure === undefined) return;
  const { schedule, ...rest } = config;
  console.log(JSON.stringify({ ...rest, actions: schedule.length }));
  for (const line of result.failure.last) console.log(line);
  console.log(result.failure.stack);
  process.exitCode = 1;
}

async function playMany(): Promise<void> {
  const coverage = new Coverage();
  const startedMs = performance.now();
  const rules = new Map<string, number[]>();
  let [played, unknown] = [0, 0];
  await playSeeds(seedsFrom(seed, count, job), (outcome) => {
    played += outcome.events;
    unknown += outcome.verdicts.unknown;
    coverage.add(outcome.coverage);
    const { failure } = outcome;
    if (failure !== undefined) rules.set(failure.rule, [...(rules.get(failure.rule) ?? []), outcome.seed]);
    return undefined;
  });
  const seconds = (performance.now() - startedMs) / 1000;
  console.log(
    `${count} seeds, ${played} events in ${seconds.toFixed(1)} s: ${(played / seconds).toFixed(0)} events/s; ` +
      `${unknown} histories undecided`,
  );
  for (const [event, met] of coverage.counts()) console.log(`${String(met).padStart(9)} ${event}`);
  for (const [rule, seeds] of rules)
    console.log(
      `FAILED ${seeds.length}: ${rule}: ${seeds
        .sort((a, b) => a - b)
        .slice(0, 12)
        .join(' ')}`,
    );
  if (rules.size > 0) process.exitCode = 1;
}
