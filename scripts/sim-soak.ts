// `node scripts/sim-soak.ts [--core 100000] [--driver 5000] [--storage 1000] [--frames 10000000] [--minutes 60] [--seed N]`: plays many
// seeds of all profiles, half of them with the faults of the second stream, and decodes many damaged frames, until all are done or the time
// is up; prints a report as markdown.

import { encodeMessage } from '../packages/raft-core/src/wire/message.ts';
import { sampleMessages } from '../packages/raft-core/test/wire/arbitrary-message.ts';
import { Coverage, type Profile } from '../packages/raft-sim/src/cluster/index.ts';
import { SimRandom } from '../packages/raft-sim/src/fakes/sim-random.ts';
import { mutated } from '../packages/raft-sim/test/wire/mutated-frame.ts';
import { parseArgs } from './parse-args.ts';
import { playSeeds, seedsFrom } from './sim-pool.ts';

const { values } = parseArgs({
  options: {
    core: { type: 'string', default: '100000' },
    driver: { type: 'string', default: '5000' },
    storage: { type: 'string', default: '1000' },
    frames: { type: 'string', default: '10000000' },
    minutes: { type: 'string', default: '60' },
    events: { type: 'string', default: '10000' },
    seed: { type: 'string' },
  },
});
const firstSeed = Number(values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]) % 2 ** 31;
const endMs = performance.now() + Number(values.minutes) * 60_000;
const coverage = new Coverage();
let failures = 0;

console.log('| profile | first seed | seeds | events | events/s | undecided histories | failures |');
console.log('| --- | --- | --- | --- | --- | --- | --- |');
for (const profile of ['storage', 'driver', 'core'] as const) {
  for (const extra of [false, true]) await soak({ profile, extra, count: Number(values[profile]) / 2 });
}
console.log(`\nDamaged frames decoded: ${decodeDamaged(Number(values.frames))}.\n`);
for (const [event, count] of coverage.counts()) console.log(`- ${event}: ${count}`);
const missing = coverage.missing();
if (missing.length > 0) console.log(`\nNever met: ${missing.join(', ')}.`);
if (failures > 0 || missing.length > 0) process.exitCode = 1;

async function soak({ profile, extra, count }: { profile: Profile; extra: boolean; count: number }): Promise<void> {
  const startedMs = performance.now();
  const failed: string[] = [];
  let [seeds, events, undecided] = [0, 0, 0];
  await playSeeds(seedsFrom(firstSeed, count, { profile, extra, events: Number(values.events) }), (outcome) => {
    seeds += 1;
    events += outcome.events;
    undecided += outcome.verdicts.unknown;
    coverage.add(outcome.coverage);
    if (outcome.failure !== undefined) failed.push(`seed ${outcome.seed}: ${outcome.failure.message}`);
    return performance.now() > endMs ? 'stop' : undefined;
  });
  failures += failed.length;
  const rate = (1000 * events) / (performance.now() - startedMs);
  console.log(
    `| ${profile}${extra ? ', extra faults' : ''} | ${firstSeed} | ${seeds} | ${events} | ${rate.toFixed(0)} ` +
      `| ${undecided} | ${failed.length} |`,
  );
  for (const line of failed.slice(0, 20)) console.error(line);
}

function decodeDamaged(count: number): number {
  const random = new SimRandom(firstSeed);
  const frames = sampleMessages(1_000, firstSeed).map(encodeMessage);
  for (let i = 0; i < count; i++) mutated(frames, random);
  return count;
}
