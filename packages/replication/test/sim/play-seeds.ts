// `node play-seeds.ts FIRST LAST`: plays seeds until one breaks a rule. Prints one line of JSON: the seed and the rule, or the totals.
import { play, type Totals } from './play.ts';

const [first = 1, last = 1] = process.argv.slice(2).map(Number);
const totals: Record<string, number> = {};
const add = (counts: Totals): void => {
  for (const [name, count] of Object.entries(counts)) totals[name] = (totals[name] ?? 0) + count;
};
const ruleOf = (error: unknown): string => (error instanceof Error ? (error.message.split(/: [{[]/)[0] ?? '') : String(error));

for (let seed = first; seed <= last; seed++) {
  try {
    add(await play(seed));
  } catch (error) {
    console.log(JSON.stringify({ seed, rule: ruleOf(error) }));
    process.exit(0);
  }
}
console.log(JSON.stringify({ totals }));
