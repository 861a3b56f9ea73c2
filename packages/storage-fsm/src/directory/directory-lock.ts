import { readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Level } from 'level';
import { makeDirectory } from '../directories.ts';
import { StorageInUse } from '../errors.ts';

/**
 * Locks the directory by keeping an empty LevelDB open in it: LevelDB holds an advisory lock (`fcntl`) on its `LOCK` file, and Node has
 * no file lock of its own. The kernel releases the lock when the process ends for any reason. The lock also works between containers
 * that share a volume, where process ids and abstract sockets mean nothing. The state machine needs such locks from the file system anyway.
 * @returns a function that releases the lock
 * @throws StorageInUse
 */
export async function lockDirectory(directory: string): Promise<() => Promise<void>> {
  const path = join(directory, 'lock');
  await makeDirectory(path);
  const held = (await tryLock(path)) ?? (await recreate(path));
  return () => held.close();
}

/** Returns undefined if LevelDB's files next to `LOCK` are corrupt. */
async function tryLock(path: string): Promise<Level | undefined> {
  const { Level } = await import('level');
  const level = new Level(path);
  try {
    await level.open();
    return level;
  } catch (error) {
    const reason = causeCode(error);
    if (reason === 'LEVEL_LOCKED') throw new StorageInUse(`the data directory ${dirname(path)} is in use by another process`);
    if (reason === 'LEVEL_CORRUPTION') return undefined;
    throw error;
  }
}

/** Deletes the corrupt files, which hold no data, and tries again. `LOCK` stays: another process may have locked that very file since. */
async function recreate(path: string): Promise<Level> {
  for (const name of await readdir(path)) if (name !== 'LOCK') await rm(join(path, name), { recursive: true });
  const level = await tryLock(path);
  if (level === undefined) throw new Error(`${path} cannot be recreated`);
  return level;
}

function causeCode(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause ? cause.code : undefined;
}
