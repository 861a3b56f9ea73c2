// `node scripts/sim-shrink.ts --seed N [--profile core|driver|storage] [--events N] [--extra] [--name N] [--mutant TEXT]`: makes a failing
// run as small as possible and stores it among the kept runs, where the tests play it from then on. With `--mutant`, it shrinks a run
// that finds that planted fault.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mutants } from '../packages/raft-sim/test/mutants.ts';
import { storageMutants } from '../packages/storage-fsm/test/sim/mutants.ts';
import { parseArgs } from './parse-args.ts';
import { copyWith } from './sim-mutant.ts';
import { ownPackages, playerOn } from './sim-player.ts';
import { profileNamed } from './sim-pool.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    profile: { type: 'string', default: 'core' },
    events: { type: 'string', default: '10000' },
    extra: { type: 'boolean', default: false },
    name: { type: 'string' },
    mutant: { type: 'string' },
  },
});
const mutant = [...mutants, ...storageMutants].find(({ name }) => values.mutant !== undefined && name.includes(values.mutant));
const copy = mutant === undefined ? undefined : copyWith(mutant);
const { configOf, play, shrink } = await playerOn(copy?.packages ?? ownPackages);
const profile = profileNamed(values.profile);
const seed = Number(values.seed);
const config = configOf({ seed, profile, events: Number(values.events), extra: values.extra });
const { failure } = await play(config);
if (copy !== undefined) rmSync(copy.folder, { recursive: true });
if (failure === undefined) {
  console.log(`seed ${seed} does not fail`);
  process.exit(1);
}

let tries = 0;
const small = await shrink(config, async (smaller) => {
  tries += 1;
  return (await play(smaller)).failure?.rule === failure.rule;
});
const folder = join(ownPackages, profile === 'storage' ? 'storage-fsm/test/sim/regressions' : 'raft-sim/test/regressions');
const name = values.name ?? `${profile}-${seed}`;
mkdirSync(folder, { recursive: true });
const file = join(folder, `${name}.json`);
writeFileSync(file, `${JSON.stringify({ rule: failure.rule, config: small }, null, 2)}\n`);
const { events, failure: still } = await play(small);
console.log(`${tries} runs; left: ${events} events, ${small.nodes} nodes, ${small.schedule.length} actions: ${still?.message}`);
console.log(file);
