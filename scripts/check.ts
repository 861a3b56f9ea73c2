// `node scripts/check.ts`: rules that neither the linter nor the compiler checks: lines, decisions, imports between folders.
//   --report             lists all findings, then their number per folder and rule, and ends with 0
//   --only RULE          line, decision, cycle or arrow
//   --arrows [PACKAGE]   prints the observed arrows as rows of scripts/check/folder-arrows.ts
//   --root DIR           looks at another checkout
//   PATH …               only findings below these paths
import { join, resolve } from 'node:path';
import { foldersOf, observedTable } from './check/folders.ts';
import { countsOf, findingsIn, lineOf } from './check/rules.ts';
import { readSourceFiles } from './check/source-files.ts';
import { parseArgs } from './parse-args.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { report: { type: 'boolean' }, arrows: { type: 'boolean' }, only: { type: 'string' }, root: { type: 'string' } },
});
const files = readSourceFiles(resolve(values.root ?? join(import.meta.dirname, '..')));
if (values.arrows) {
  for (const name of positionals.length > 0 ? positionals : foldersOf(files).keys()) console.log(observedTable(files, name));
  process.exit(0);
}
const findings = findingsIn(files)
  .filter(({ rule }) => values.only === undefined || rule === values.only)
  .filter(({ path }) => positionals.length === 0 || positionals.some((below) => path.startsWith(below)));
for (const finding of findings) console.log(lineOf(finding));
if (values.report) console.log(['', ...countsOf(findings)].join('\n'));
console.log(`checked ${files.length} files: ${findings.length} findings`);
process.exitCode = findings.length > 0 && !values.report ? 1 : 0;
