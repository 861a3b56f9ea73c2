// `npm run bench:batch [-- --items 20000] [--rounds 5]`: CPU time of one item of a large batch, compared with that of the cipher object of
// node:crypto that every item needs. Prints Markdown. See docs/benchmarks.md.
import { parseArgs } from '../scripts/parse-args.ts';
import { measureBatch, type Share } from './batch/measure.ts';

const { values } = parseArgs({
  options: { items: { type: 'string', default: '20000' }, rounds: { type: 'string', default: '5' } },
});
const items = Number(values.items);
const rounds = Number(values.rounds);
if (![items, rounds].every((value) => Number.isSafeInteger(value) && value > 0)) {
  console.error('bench:batch: --items and --rounds must be positive integers');
  process.exit(1);
}

const us = (value: number): string => value.toFixed(2);
const row = ({ operation, cipherUs, itemUs }: Share): string =>
  `| ${operation} | ${us(itemUs)} | ${us(cipherUs)} | ${us(itemUs - cipherUs)} |`;

console.log('| operation | CPU µs per item | cipher object alone | the rest |');
console.log('| --- | ---: | ---: | ---: |');
for (const share of await measureBatch({ items, rounds })) console.log(row(share));
