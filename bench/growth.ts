// `node bench/growth.ts`: measures how costs grow with the number of keys, of versions and of tokens, on nodes that it starts. Prints the
// report, and writes it to bench/results. See docs/benchmarks.md.
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { runCommand } from './command.ts';
import { keysCurve, tokensCurve, versionsCurve } from './growth/curves.ts';
import { type Options, parseOptions, usage } from './growth/options.ts';
import { type GrowthRun, markdown } from './growth/report.ts';
import { Generator } from './http/generator.ts';
import { OwnProcesses } from './http/own-processes.ts';
import { machine } from './machine.ts';

await runCommand('bench/growth.ts', usage, (args) => main(parseOptions(args)));

async function main({ out, ...settings }: Options): Promise<void> {
  const own = new OwnProcesses();
  const generator = new Generator(1);
  const [date, [loadBefore = 0]] = [new Date().toISOString(), loadavg()];
  try {
    const parts = { own, generator, options: { out, ...settings }, say: (text: string) => console.error(text) };
    const curves = [await keysCurve(parts), await versionsCurve(parts), await tokensCurve(parts)];
    writeReport(out, { title: 'Growth', date, machine: machine(), settings, loadBefore, loadAfter: loadavg()[0] ?? 0, curves });
  } finally {
    await generator.close();
    await own.stop();
  }
}

/** Writes `DATE-TIME-growth.md` and `.json` into the folder, and prints the Markdown. */
function writeReport(folder: string, run: GrowthRun): void {
  mkdirSync(folder, { recursive: true });
  const name = join(folder, `${run.date.slice(0, 19).replace('T', '-').replaceAll(':', '')}-growth`);
  writeFileSync(`${name}.md`, `${markdown(run)}\n`);
  writeFileSync(`${name}.json`, `${JSON.stringify(run, undefined, 2)}\n`);
  console.log(markdown(run));
}
