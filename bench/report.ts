import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';

/** Returns the processor, cores, memory, system and version of Node that a report names. */
export function machine(): string {
  const [cpu] = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return `${cpu?.model ?? 'unknown CPU'}, ${cpus().length} cores, ${memory}, ${process.platform}, Node ${process.version}`;
}

/** Writes `DATE-TIME-NAME.md` and `.json` into the folder, and prints the Markdown. */
export function writeReport(folder: string, name: string, run: { readonly date: string }, markdown: string): void {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${run.date.slice(0, 19).replace('T', '-').replaceAll(':', '')}-${name}`);
  writeFileSync(`${path}.md`, `${markdown}\n`);
  writeFileSync(`${path}.json`, `${JSON.stringify(run, undefined, 2)}\n`);
  console.log(markdown);
  console.error(`written to ${path}.md and .json`);
}
