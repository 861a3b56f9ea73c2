import { chmod, mkdir, open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Level } from 'level';
import { damaged, StorageFailed, StorageInUse } from '../errors.ts';
import { checkTables } from './leveldb/tables.ts';

/**
 * The database that holds a state. Keys are text, which LevelDB keeps and sorts as UTF-8: a buffer for each would take a third of the
 * time of reading many records. A single one is looked up by {@link getExactly}.
 */
export type Database = Level<string, Buffer>;

/** A write that is gathered in LevelDB's own memory: objects for each step would weigh on a large one. */
export type Batch = ReturnType<Database['batch']>;

/** An open database, and what LevelDB leaves to its user. */
export interface StateDatabase {
  readonly level: Database;
  /** Makes the names of its files durable. */
  readonly syncNames: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/**
 * The value under exactly this key. classic-level 3.0.0 looks a key that is text up by as much of it as fits into a buffer of its own when a
 * character would not fit whole: another record, or none.
 */
export const getExactly = (level: Database, key: string, options?: { readonly snapshot?: Snapshot }): Buffer | undefined =>
  level.getSync(Buffer.from(key), { ...options, keyEncoding: 'buffer' });

/** The database as it was at some moment. */
export type Snapshot = ReturnType<Database['snapshot']>;

/** Opens the database in a directory, or makes it. @throws StorageDamaged, StorageInUse, StorageFailed */
export type OpenDatabase = (directory: string) => Promise<StateDatabase>;

/** LevelDB in a directory that only the user of this node may read. Every block of its tables is checked first. */
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

/** The directory is synced into its parent, or a power cut could take all of it. */
export async function makePrivateDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  const parent = await open(dirname(directory), 'r');
  try {
    await parent.sync();
  } finally {
    await parent.close();
  }
}

/** Files that LevelDB makes later take the process's umask, which is to be 0077; the directory shuts others out in any case. */
export async function makeFilesPrivate(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    await makeFilePrivate(join(directory, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error; // LevelDB compacts meanwhile, and removes what it needs no more
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
  // LevelDB would take the other files for leftovers, delete them and begin with nothing.
  const hasData = names.some((name) => /\.(?:log|ldb|sst)$/.test(name));
  if (isNew && hasData) throw damaged(directory, 'has lost its file CURRENT');
  const level: Database = new Level(directory, {
    keyEncoding: 'utf8',
    valueEncoding: 'buffer',
    compression: false, // ciphertext does not shrink
    createIfMissing: isNew,
  });
  try {
    await level.open();
  } catch (error) {
    throw openError(directory, error);
  }
  return level;
}

/** Causes that lie outside the files: another process has them, or the system refuses. */
const outside = /No space left|Disk quota|Permission denied|Too many open files|Read-only file system|Cannot allocate memory/;

/** What an error of LevelDB means while a database is opened and checked; any other error as it is. */
export function openError(directory: string, error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('LEVEL_'))) return error;
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = 'code' in cause ? cause.code : undefined;
  if (code === 'LEVEL_LOCKED') return new StorageInUse(`${directory} is in use by another process`, { cause });
  if (outside.test(cause.message)) return new StorageFailed(`${directory} cannot be opened: ${cause.message}`, { cause });
  return damaged(directory, `is no database that can be read (${cause.message})`);
}
