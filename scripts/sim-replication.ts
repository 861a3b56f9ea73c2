// `node scripts/sim-replication.ts [--seeds N] [--first N] [--mutants [--only TEXT]]`: plays disaster-recovery replication between
// simulated clusters, and prints the totals. With --mutants it plants each fault of packages/replication/test/sim/mutants.ts into a copy,
// and fails if one is not found.

import { hunt } from '../packages/replication/test/sim/hunt.ts';
import { replicationMutants } from '../packages/replication/test/sim/mutants.ts';
import { play } from '../packages/replication/test/sim/play.ts';
import { parseArgs } from './parse-args.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    first: { type: 'string', default: '1' },
    mutants: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
});
const [first, seeds] = [Number(values.first), Number(values.seeds)];

if (values.mutants) {
  console.log('| fault | first seed that finds it | rule that it broke |');
  console.log('| --- | --- | --- |');
  for (const mutant of replicationMutants.filter(({ name }) => name.includes(values.only))) {
    const found = await hunt(mutant, seeds);
    if (found === undefined) process.exitCode = 1;
    console.log(`| ${mutant.name} | ${found === undefined ? '**not found** | ' : `${found.seed} | ${found.rule}`} |`);
  }
} else {
  const totals: Record<string, number> = {};
  for (let seed = first; seed < first + seeds; seed++)
    for (const [name, count] of Object.entries(await played(seed))) totals[name] = (totals[name] ?? 0) + count;
  console.log(JSON.stringify({ first, seeds, ...totals }));
}

async function played(seed: number): Promise<Readonly<Record<string, number>>> {
  try {
    return await play(seed);
  } catch (error) {
    throw new Error(`seed ${seed} breaks a rule`, { cause: error });
  }
}
