// `npm run sim:exhaustive [-- --depth 14] [--nodes 3] [--terms 2] [--entries 3] [--passes 4] [--states N]`: plays all orders of messages, passing
// time and proposals in a small cluster, from a fresh one and from one with a leader; prints how many states there were.
import { parseArgs } from 'node:util';
import { explore } from '../packages/raft-core/src/sim/exhaustive/explore.ts';
import { SmallCluster } from '../packages/raft-core/src/sim/exhaustive/small-cluster.ts';

const { values } = parseArgs({
  options: {
    depth: { type: 'string', default: '14' },
    nodes: { type: 'string', default: '3' },
    terms: { type: 'string', default: '2' },
    entries: { type: 'string', default: '3' },
    passes: { type: 'string', default: '4' },
    states: { type: 'string', default: '2000000' },
  },
});
const [nodes, termMax, proposalsMax] = [Number(values.nodes), Number(values.terms), Number(values.entries)];
console.log('| begins with | every order to depth | states | transitions | seconds | failure |');
console.log('| --- | --- | --- | --- | --- | --- |');
for (const isLed of [false, true]) {
  const startedMs = performance.now();
  const { states, transitions, depth, byDepth, failure } = explore(
    new SmallCluster({ nodes, termMax, proposalsMax, passesMax: Number(values.passes), isLed }),
    { depthMax: Number(values.depth), statesMax: Number(values.states) },
  );
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  const beginning = isLed ? 'a leader' : 'nobody';
  console.log(`| ${beginning} | ${depth} | ${states} | ${transitions} | ${seconds} | ${failure?.message ?? 'none'} |`);
  console.error(`new states by depth: ${byDepth.join(' ')}`);
  if (failure !== undefined) process.exitCode = 1;
}
