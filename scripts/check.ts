// `node scripts/check.ts`: rules that neither the linter nor the compiler checks: lines, decisions, imports between folders.
//   --only RULE          line, decision, cycle or arrow
//   --arrows [PACKAGE]   prints the observed arrows as rows of scripts/check/folder-arrows.ts
//   PATH …               only findings below these paths
import { join } from 'node:path';
import { foldersOf, observedTable } from './check/folders.ts';
import { findingsIn, lineOf } from './check/rules.ts';
import { readSourceFiles } from './check/source-files.ts';
import { parseArgs } from './parse-args.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { arrows: { type: 'boolean' }, only: { type: 'string' } },
});
const files = readSourceFiles(join(import.meta.dirname, '..'));
if (values.arrows) {
  for (const name of positionals.length > 0 ? positionals : foldersOf(files).keys()) console.log(observedTable(files, name));
  process.exit(0);
}
const findings = findingsIn(files)
  .filter(({ rule }) => values.only === undefined || rule === values.only)
  .filter(({ path }) => positionals.length === 0 || positionals.some((below) => path.startsWith(below)));
for (const finding of findings) console.log(lineOf(finding));
console.log(`checked ${files.length} files: ${findings.length} findings`);
process.exitCode = findings.length > 0 ? 1 : 0;
