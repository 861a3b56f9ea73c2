// `node bench/growth.ts`: measures how costs grow with the number of keys, of versions and of tokens, on nodes that it starts. Prints the
// report, and writes it to bench/results. See docs/benchmarks.md.
import { loadavg } from 'node:os';
import { runCommand } from './command.ts';
import { keysCurve, tokensCurve, versionsCurve } from './growth/curves.ts';
import { type Options, parseOptions } from './growth/options.ts';
import { markdown } from './growth/report.ts';
import { Generator } from './http/generator.ts';
import { OwnProcesses } from './http/own-processes.ts';
import { machine, writeReport } from './report.ts';

await runCommand('bench/growth.ts', (args) => main(parseOptions(args)));

async function main({ out, ...settings }: Options): Promise<void> {
  const own = new OwnProcesses();
  const generator = new Generator(1);
  const [date, [loadBefore = 0]] = [new Date().toISOString(), loadavg()];
  try {
    const parts = { own, generator, options: { out, ...settings }, say: (text: string) => console.error(text) };
    const curves = [await keysCurve(parts), await versionsCurve(parts), await tokensCurve(parts)];
    const loadAfter = loadavg()[0] ?? 0;
    const run = { title: 'Growth', date, machine: machine(), settings, loadBefore, loadAfter, curves };
    writeReport(out, 'growth', run, markdown(run));
  } finally {
    await generator.close();
    await own.stop();
  }
}
