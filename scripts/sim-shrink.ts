// `npm run sim:shrink -- --seed N [--profile core|driver] [--events N] [--name N] [--mutant TEXT]`: makes a failing run as small
// as it gets and keeps it in test/sim/regressions, where the tests play it for ever. With `--mutant` the run is one that finds
// that planted fault.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { Profile } from '../packages/raft-core/src/sim/cluster/index.ts';
import { mutants } from '../packages/raft-core/test/sim/mutants.ts';
import { copyWith } from './sim-mutant.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    profile: { type: 'string', default: 'core' },
    events: { type: 'string', default: '10000' },
    name: { type: 'string' },
    mutant: { type: 'string' },
  },
});
const ownPackage = join(import.meta.dirname, '../packages/raft-core');
const mutant = mutants.find(({ name }) => values.mutant !== undefined && name.includes(values.mutant));
const packageFolder = mutant === undefined ? ownPackage : copyWith(mutant);
const entry = pathToFileURL(join(packageFolder, 'src/sim/cluster/index.ts')).href;
const { configOf, runSimulation, shrink }: typeof import('../packages/raft-core/src/sim/cluster/index.ts') = await import(entry);
if (mutant !== undefined) rmSync(packageFolder, { recursive: true });
const profile: Profile = values.profile === 'driver' ? 'driver' : 'core';
const seed = Number(values.seed);
const config = configOf(seed, profile, Number(values.events));
const { failure } = runSimulation(config);
if (failure === undefined) {
  console.log(`seed ${seed} does not fail`);
  process.exit(1);
}

let tries = 0;
const small = shrink(config, (smaller) => {
  tries += 1;
  return runSimulation(smaller).failure?.rule === failure.rule;
});
const folder = join(ownPackage, 'test/sim/regressions');
const name = values.name ?? `${profile}-${seed}`;
mkdirSync(folder, { recursive: true });
const file = join(folder, `${name}.json`);
writeFileSync(file, `${JSON.stringify({ rule: failure.rule, config: small }, null, 2)}\n`);
const { events, failure: still } = runSimulation(small);
console.log(`${tries} runs; left: ${events} events, ${small.nodes} nodes, ${small.schedule.length} actions: ${still?.message}`);
console.log(file);
