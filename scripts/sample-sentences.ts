// `npm run sample -- --seed 7 --size 200`: prints random sentences of this repository with file and line. A reader marks those
// that have to be read twice. Comments, messages (log lines, error and help texts, alerts, the console), documents and names of tests
// have equal shares.
//   --kind comment|message|doc|test   draws from one kind only
//   --root DIR                        reads another checkout, also an older one
import { join, resolve } from 'node:path';
import { draw, type SentenceKind, sentenceKinds, sentencesIn } from './check/sample.ts';
import { readSourceFiles } from './check/source-files.ts';
import { parseArgs } from './parse-args.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    size: { type: 'string', default: '200' },
    kind: { type: 'string' },
    root: { type: 'string', default: join(import.meta.dirname, '..') },
  },
});
const numberOf = (name: 'seed' | 'size'): number => {
  if (!/^\d{1,9}$/.test(values[name])) throw new Error(`--${name} must be a whole number, not ${values[name]}`);
  return Number(values[name]);
};
const isKind = (name: string): name is SentenceKind => (sentenceKinds as readonly string[]).includes(name);
if (values.kind !== undefined && !isKind(values.kind)) throw new Error(`--kind must be one of ${sentenceKinds.join(', ')}`);

const [seed, size] = [numberOf('seed'), numberOf('size')];
const all = readSourceFiles(resolve(values.root)).flatMap(sentencesIn);
const drawn = draw(all, { seed, size, ...(values.kind !== undefined && { kinds: [values.kind] }) });
for (const [index, { kind, path, line, text }] of drawn.entries())
  console.log(`${String(index + 1).padStart(3)}. [${kind}] ${path}:${line}\n     ${text}\n`);
const counts = sentenceKinds.map((kind) => `${drawn.filter((each) => each.kind === kind).length} ${kind}`);
console.log(`seed ${seed}: ${drawn.length} of ${all.length} sentences (${counts.join(', ')})`);
