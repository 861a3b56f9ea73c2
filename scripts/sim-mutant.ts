// A copy of the simulated packages with one fault planted in it.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Profile } from '../packages/raft-sim/src/cluster/index.ts';
import { ownPackages } from './sim-player.ts';
import { type Outcome, playSeeds, seedsFrom } from './sim-pool.ts';

/** One fault in one place: `find` occurs once in the file, and `replace` takes its place. */
export interface Mutant {
  readonly name: string;
  /** Path within `packages`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The profile that runs the changed code; `core` by default. */
  readonly profile?: Profile;
  /** Only the faults of the second stream reveal it. */
  readonly extra?: boolean;
}

/** The packages that a simulation runs. */
const simulated = ['raft-core', 'raft-sim', 'storage-fsm'];

/** Returns the text of the file with the fault in it. @throws Error if the patch does not apply to exactly one place */
export function mutated({ name, file, find, replace }: Mutant): string {
  const text = readFileSync(join(ownPackages, file), 'utf8');
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`'${name}': 'find' occurs ${parts.length - 1} times in ${file}, not once`);
  return parts.join(replace);
}

/**
 * Copies the simulated packages and plants the fault in the copy; the caller removes `folder`. The copies import each other, because
 * `packages/node_modules` precedes the workspace's `node_modules`, from which they take only libraries.
 */
export function copyWith(mutant: Mutant): { readonly folder: string; readonly packages: string } {
  const text = mutated(mutant);
  const folder = mkdtempSync(join(tmpdir(), 'mutant-'));
  const packages = join(folder, 'packages');
  const links = join(packages, 'node_modules/@transitd');
  mkdirSync(links, { recursive: true });
  symlinkSync(join(import.meta.dirname, '../node_modules'), join(folder, 'node_modules'));
  for (const name of simulated) {
    for (const part of ['src', 'test', 'package.json'])
      cpSync(join(ownPackages, name, part), join(packages, name, part), { recursive: true });
    symlinkSync(join(packages, name), join(links, name));
  }
  writeFileSync(join(packages, mutant.file), text);
  return { folder, packages };
}

export interface Catch {
  readonly outcome: Outcome;
  /** Number of seeds played until the fault was found. */
  readonly played: number;
}

/** Plays seeds on the copy until one fails; returns undefined if none does. */
export async function hunt(
  mutant: Mutant,
  { seeds, events, firstSeed = 1, threads }: { seeds: number; events: number; firstSeed?: number; threads?: number },
): Promise<Catch | undefined> {
  const { folder, packages } = copyWith(mutant);
  try {
    let played = 0;
    let caught: Catch | undefined;
    await playSeeds(
      seedsFrom(firstSeed, seeds, { profile: mutant.profile ?? 'core', events, extra: mutant.extra === true }),
      (outcome) => {
        played += 1;
        if (outcome.failure === undefined) return undefined;
        caught = { outcome, played };
        return 'stop';
      },
      // Most faults are found by one of the first seeds, and the rest of a batch would be played for nothing.
      { packages, batch: 1, ...(threads === undefined ? {} : { threads }) },
    );
    return caught;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
