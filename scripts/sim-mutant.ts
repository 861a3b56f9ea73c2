// A copy of a package with one fault planted in it.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Profile } from '../packages/raft-core/src/sim/cluster/index.ts';
import { type Folders, ownFolders } from './sim-player.ts';
import { type Outcome, playSeeds, seedsFrom } from './sim-pool.ts';

/** One fault in one place: `find` occurs once in the file, and `replace` takes its place. */
export interface Mutant {
  readonly name: string;
  /** Path within `storage-fsm` for the profile `storage`, otherwise within `raft-core`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The profile that runs the changed code; `core` by default. */
  readonly profile?: Profile;
  /** Only the faults of the second stream reveal it. */
  readonly extra?: boolean;
}

const packageOf = ({ profile }: Mutant): keyof Folders => (profile === 'storage' ? 'storage' : 'raftCore');

/** Returns the text of the file with the fault in it. @throws Error if the patch does not apply to exactly one place */
export function mutated(mutant: Mutant): string {
  const { name, file, find, replace } = mutant;
  const text = readFileSync(join(ownFolders[packageOf(mutant)], file), 'utf8');
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`'${name}': 'find' occurs ${parts.length - 1} times in ${file}, not once`);
  return parts.join(replace);
}

/** Copies the package and plants the fault in the copy; the caller removes `folder`. */
export function copyWith(mutant: Mutant): { readonly folder: string; readonly folders: Folders } {
  const text = mutated(mutant);
  const own = ownFolders[packageOf(mutant)];
  const folder = mkdtempSync(join(tmpdir(), 'mutant-'));
  for (const part of ['src', 'test', 'package.json']) cpSync(join(own, part), join(folder, part), { recursive: true });
  symlinkSync(join(import.meta.dirname, '../node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, mutant.file), text);
  return { folder, folders: { ...ownFolders, [packageOf(mutant)]: folder } };
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
  const { folder, folders } = copyWith(mutant);
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
      { folders, ...(threads === undefined ? {} : { threads }) },
    );
    return caught;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
