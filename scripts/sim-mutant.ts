// A copy of raft-core with one fault in it.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Mutant } from '../packages/raft-core/test/sim/mutants.ts';
import { type Outcome, playSeeds, seedsFrom } from './sim-pool.ts';

const packageFolder = join(import.meta.dirname, '../packages/raft-core');

/** The text of the file with the fault in it. @throws Error when the patch does not fit exactly one place */
export function mutated({ name, file, find, replace }: Mutant): string {
  const text = readFileSync(join(packageFolder, file), 'utf8');
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`'${name}' fits ${parts.length - 1} places of ${file}`);
  return parts.join(replace);
}

/** The folder of a copy of the package with the fault in it; the caller removes it. */
export function copyWith(mutant: Mutant): string {
  const text = mutated(mutant);
  const folder = mkdtempSync(join(tmpdir(), 'mutant-'));
  cpSync(join(packageFolder, 'src'), join(folder, 'src'), { recursive: true });
  cpSync(join(packageFolder, 'package.json'), join(folder, 'package.json'));
  writeFileSync(join(folder, mutant.file), text);
  return folder;
}

export interface Catch {
  readonly outcome: Outcome;
  /** Seeds played until then. */
  readonly played: number;
}

/** Plays seeds on the copy until one fails; undefined when none of them does. */
export async function hunt(
  mutant: Mutant,
  { seeds, events, firstSeed = 1, threads }: { seeds: number; events: number; firstSeed?: number; threads?: number },
): Promise<Catch | undefined> {
  const folder = copyWith(mutant);
  try {
    let played = 0;
    let caught: Catch | undefined;
    await playSeeds(
      seedsFrom(firstSeed, seeds, mutant.profile ?? 'core', events),
      (outcome) => {
        played += 1;
        if (outcome.failure === undefined) return undefined;
        caught = { outcome, played };
        return 'stop';
      },
      { packageFolder: folder, ...(threads === undefined ? {} : { threads }) },
    );
    return caught;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
