// `node scripts/sim-exhaustive.ts [--depth 14] [--nodes 3] [--terms 2] [--entries 3] [--passes 4] [--states N] [--names]`: plays messages,
// the passage of time and proposals of a small cluster in every possible order, once from a fresh start and once with a leader; prints the
// number of states.
// States that differ only by the names of the nodes count as one, unless `--names` is given.

import { explore } from '../packages/raft-sim/src/exhaustive/explore.ts';
import { SmallCluster } from '../packages/raft-sim/src/exhaustive/small-cluster.ts';
import { UpToRenaming } from '../packages/raft-sim/src/exhaustive/up-to-renaming.ts';
import { parseArgs } from './parse-args.ts';

const { values } = parseArgs({
  options: {
    depth: { type: 'string', default: '14' },
    nodes: { type: 'string', default: '3' },
    terms: { type: 'string', default: '2' },
    entries: { type: 'string', default: '3' },
    passes: { type: 'string', default: '4' },
    states: { type: 'string', default: '200000000' },
    names: { type: 'boolean', default: false },
  },
});
const [nodes, termMax, proposalsMax] = [Number(values.nodes), Number(values.terms), Number(values.entries)];
console.log('| start | every order to depth | states | transitions | seconds of processor time | MB at most | failure |');
console.log('| --- | --- | --- | --- | --- | --- | --- |');
for (const isLed of [false, true]) {
  const before = process.cpuUsage();
  const cluster = new SmallCluster({ nodes, termMax, proposalsMax, passesMax: Number(values.passes), isLed });
  const upToRenaming = new UpToRenaming(cluster);
  const { states, transitions, depth, byDepth, failure } = explore(values.names ? cluster : upToRenaming, {
    depthMax: Number(values.depth),
    statesMax: Number(values.states),
  });
  const { user, system } = process.cpuUsage(before);
  const seconds = ((user + system) / 1e6).toFixed(1);
  const megabytes = Math.round(process.resourceUsage().maxRSS / 1024);
  const start = isLed ? 'with a leader' : 'fresh';
  console.log(`| ${start} | ${depth} | ${states} | ${transitions} | ${seconds} | ${megabytes} | ${failure?.message ?? 'none'} |`);
  console.error(`new states by depth: ${byDepth.join(' ')}`);
  if (failure === undefined) continue;
  process.exitCode = 1;
  const path = values.names ? failure.choices : upToRenaming.inOneName(failure.choices);
  for (const transition of path) console.error(cluster.describe(transition));
}
