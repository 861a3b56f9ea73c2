// `node scripts/sim-mutants.ts [--seeds N] [--only TEXT]`: plants each fault of raft-sim's and storage-fsm's mutants.ts into a copy, and
// prints as markdown which seed finds it. Fails if one is not found.

import { mutants } from '../packages/raft-sim/test/mutants.ts';
import { storageMutants } from '../packages/storage-fsm/test/sim/mutants.ts';
import { parseArgs } from './parse-args.ts';
import { hunt } from './sim-mutant.ts';

/** This profile is ten times slower than the others. */
const STORAGE_SEEDS_MAX = 2_000;
const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20000' },
    events: { type: 'string', default: '10000' },
    only: { type: 'string', default: '' },
  },
});
const chosen = [...mutants, ...storageMutants].filter(({ name }) => name.includes(values.only));
console.log('| fault | file | first seed that finds it | seeds played | rule that it broke |');
console.log('| --- | --- | --- | --- | --- |');
let missed = 0;
for (const mutant of chosen) {
  const profile = mutant.profile ?? 'core';
  const seeds = Math.min(Number(values.seeds), profile === 'storage' ? STORAGE_SEEDS_MAX : Number.POSITIVE_INFINITY);
  const caught = await hunt(mutant, { seeds, events: Number(values.events) });
  if (caught === undefined) missed += 1;
  const found =
    caught === undefined
      ? '**not found** | |'
      : `${profile} ${caught.outcome.seed}${mutant.extra === true ? ' extra' : ''} | ${caught.played} | ${caught.outcome.failure?.rule}`;
  console.log(`| ${mutant.name} | \`${mutant.file}\` | ${found} |`);
}
if (missed > 0) {
  console.log(`\n${missed} of ${chosen.length} not found.`);
  process.exitCode = 1;
}
