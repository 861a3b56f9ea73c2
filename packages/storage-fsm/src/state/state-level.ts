import { chmod, open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Level } from 'level';
import { makeDirectory, syncDirectory } from '../directories.ts';
import { damaged, StorageFailed, StorageInUse } from '../errors.ts';
import { checkTables } from './leveldb/tables.ts';

/**
 * The database that holds a state. Keys are strings, which LevelDB stores and sorts as UTF-8: creating a buffer per key would
 * take a third of the time of reading many records. {@link getExactly} looks up a single key.
 */
export type Database = Level<string, Buffer>;

/** A write batch in LevelDB's own memory. A JavaScript object for each operation of a large batch would take too much memory. */
export type Batch = ReturnType<Database['batch']>;

/** An open database, with the operations that LevelDB itself lacks. */
export interface StateDatabase {
  readonly level: Database;
  /** Makes the names of the database's files durable. */
  readonly syncNames: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/**
 * Returns the value under exactly this key. classic-level 3.0.0 copies a string key into a buffer of its own and truncates the key when a
 * character does not fit whole, so that a look-up by string can find another record or none.
 */
export const getExactly = (level: Database, key: string, options?: { readonly snapshot?: Snapshot }): Buffer | undefined =>
  level.getSync(Buffer.from(key), { ...options, keyEncoding: 'buffer' });

/** The database as of one moment. */
export type Snapshot = ReturnType<Database['snapshot']>;

/** Opens the database in a directory, or creates it. @throws StorageDamaged, StorageInUse, StorageFailed */
export type OpenDatabase = (directory: string) => Promise<StateDatabase>;

/** Opens LevelDB in a directory that only the node's user may read, after checking every block of its tables. */
export const openLocal: OpenDatabase = async (directory) => {
  await makePrivateDirectory(directory);
  await checkTables(directory);
  const level = await openLevel(directory);
  try {
    await makeFilesPrivate(directory);
    const handle = await open(directory, 'r');
    const close = async () => {
      await level.close();
      await handle.close();
    };
    return { level, syncNames: () => handle.sync(), close };
  } catch (error) {
    await level.close();
    throw openError(directory, error);
  }
};

/** Creates the directory and syncs its parent, or a power failure could lose the whole directory. */
export async function makePrivateDirectory(directory: string): Promise<void> {
  await makeDirectory(directory);
  await chmod(directory, 0o700);
  await syncDirectory(dirname(directory));
}

/** Makes the files private. Files that LevelDB creates later follow the umask, which should be 0077; the directory is private anyway. */
export async function makeFilesPrivate(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    await makeFilePrivate(join(directory, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error; // LevelDB may compact in the meantime, which removes files
    });
  }
}

async function makeFilePrivate(file: string): Promise<void> {
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0) await chmod(file, 0o600);
}

export async function openLevel(directory: string): Promise<Database> {
  const names = await readdir(directory);
  const isNew = !names.includes('CURRENT');
  // Without CURRENT, LevelDB would treat the other files as leftovers, delete them and create an empty database.
  const hasData = names.some((name) => /\.(?:log|ldb|sst)$/.test(name));
  if (isNew && hasData) throw damaged(directory, 'is missing its file CURRENT');
  const { Level } = await import('level'); // gateway threads open no database
  const level: Database = new Level(directory, {
    keyEncoding: 'utf8',
    valueEncoding: 'buffer',
    compression: false, // ciphertext cannot be compressed
    createIfMissing: isNew,
  });
  try {
    await level.open();
  } catch (error) {
    throw openError(directory, error);
  }
  return level;
}

/** Error messages that show a failure of the system, not damage of the files. */
const systemRefusal =
  /No space left|Disk quota|Permission denied|Too many open files|Read-only file system|Cannot allocate memory/;

/** Translates an error that LevelDB throws while a database is opened and checked; returns any other error unchanged. */
export function openError(directory: string, error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('LEVEL_'))) return error;
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = 'code' in cause ? cause.code : undefined;
  if (code === 'LEVEL_LOCKED') return new StorageInUse(`${directory} is in use by another process`, { cause });
  if (systemRefusal.test(cause.message)) return new StorageFailed(`${directory} cannot be opened: ${cause.message}`, { cause });
  return damaged(directory, `is not a readable database (${cause.message})`);
}
