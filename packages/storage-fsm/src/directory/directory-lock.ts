import { mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Level } from 'level';
import { StorageInUse } from '../errors.ts';

/**
 * Holds an empty LevelDB open for the advisory lock (`fcntl`) that it keeps on its `LOCK` file. Node itself offers no file lock;
 * this one is the kernel's, so it ends with the process however that ends, and it holds between containers that share a volume,
 * where process numbers and abstract sockets mean nothing. The state machine needs it of the file system anyway.
 * @throws StorageInUse
 */
export async function lockDirectory(directory: string): Promise<() => Promise<void>> {
  const path = join(directory, 'lock');
  await mkdir(path, { recursive: true, mode: 0o700 });
  const held = (await tryLock(path)) ?? (await remake(path));
  return () => held.close();
}

/** Undefined if the files beside the lock are unreadable. */
async function tryLock(path: string): Promise<Level | undefined> {
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

/** They hold nothing. `LOCK` stays, for whoever has locked it meanwhile has locked this very file. */
async function remake(path: string): Promise<Level> {
  for (const name of await readdir(path)) if (name !== 'LOCK') await rm(join(path, name), { recursive: true });
  const level = await tryLock(path);
  if (level === undefined) throw new Error(`${path} cannot be made anew`);
  return level;
}

function causeCode(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause ? cause.code : undefined;
}
