import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ReplicationMutant } from './mutants.ts';

const repository = join(import.meta.dirname, '../../../..');
const copied = ['replication', 'storage-fsm'];
/** A fault may also make a simulation run forever. 600 seeds take about a minute. */
const HUNT_MS = 10 * 60_000;

/** Returns the text of the file with the fault in it. @throws Error if the patch does not apply to exactly one place */
export function mutated({ name, file, find, replace }: ReplicationMutant): string {
  const parts = readFileSync(join(repository, 'packages', file), 'utf8').split(find);
  if (parts.length !== 2) throw new Error(`'${name}': 'find' occurs ${parts.length - 1} times in ${file}, not once`);
  return parts.join(replace);
}

/** Plays seeds on copies of the packages with the fault in them; returns the seed that found it and the broken rule, if one did. */
export async function hunt(mutant: ReplicationMutant, seeds: number): Promise<{ seed: number; rule: string } | undefined> {
  const text = mutated(mutant);
  const folder = mkdtempSync(join(tmpdir(), 'mutant-'));
  try {
    for (const name of copied)
      for (const part of ['src', 'test', 'package.json'])
        cpSync(join(repository, 'packages', name, part), join(folder, 'packages', name, part), { recursive: true });
    writeFileSync(join(folder, 'packages', mutant.file), text);
    linkModules(folder);
    const script = join(folder, 'packages/replication/test/sim/play-seeds.ts');
    const { stdout } = await promisify(execFile)(process.execPath, [script, '1', String(seeds)], { timeout: HUNT_MS });
    const found: { seed?: number; rule?: string } = JSON.parse(stdout);
    return found.seed === undefined ? undefined : { seed: found.seed, rule: found.rule ?? '' };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Makes the copies import each other, and everything else from this repository. */
function linkModules(folder: string): void {
  const [from, to] = [join(repository, 'node_modules'), join(folder, 'node_modules')];
  mkdirSync(join(to, '@transitd'), { recursive: true });
  for (const name of readdirSync(from)) if (name !== '@transitd') symlinkSync(join(from, name), join(to, name));
  for (const name of readdirSync(join(from, '@transitd')))
    symlinkSync(join(copied.includes(name) ? folder : repository, 'packages', name), join(to, '@transitd', name));
}
