// `node bench/replication.ts [--megabytes 200] [--value-bytes 4096] [--rounds 3]`: how fast a disaster-recovery secondary catches
// up over TLS, by the whole state and by entries. Prints Markdown. See docs/benchmarks.md.
import { parseArgs } from '../scripts/parse-args.ts';
import { measureCatchUp } from './replication/measure.ts';

const { values } = parseArgs({
  options: {
    megabytes: { type: 'string', default: '200' },
    'value-bytes': { type: 'string', default: '4096' },
    rounds: { type: 'string', default: '3' },
  },
});
const [megabytes, valueBytes, rounds] = [Number(values.megabytes), Number(values['value-bytes']), Number(values.rounds)];
if (![megabytes, valueBytes, rounds].every((value) => Number.isSafeInteger(value) && value > 0)) {
  console.error('bench/replication.ts: --megabytes, --value-bytes and --rounds must be positive integers');
  process.exit(1);
}

console.log(
  '| round | whole state, MB/s | entries, MB/s | written locally, MB/s | plain TLS, MB/s | state / local | entries / local |',
);
console.log('| ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
for (let round = 1; round <= rounds; round++) {
  const { stateMBs, entriesMBs, localMBs, plainTlsMBs } = await measureCatchUp({ megabytes, valueBytes });
  const shares = [stateMBs, entriesMBs].map((rate) => (rate / localMBs).toFixed(2));
  console.log(
    `| ${[round, ...[stateMBs, entriesMBs, localMBs, plainTlsMBs].map((rate) => rate.toFixed(0)), ...shares].join(' | ')} |`,
  );
}
