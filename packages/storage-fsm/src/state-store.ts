import { chmod, mkdir, open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Iterator, Level } from 'level';
import { StorageDamaged } from './damage.ts';
import { addToDigest, emptyDigest, recordDigest } from './digest.ts';
import { failpoint } from './failpoint.ts';
import { checkTables } from './leveldb-tables.ts';
import type { Pending } from './overlay.ts';
import type { Row } from './range.ts';
import {
  decodeMeta,
  decodePath,
  decodeRecord,
  emptyMeta,
  encodeMeta,
  encodeRecord,
  metaKey,
  type StateMeta,
} from './state-record.ts';
import { damaged, StorageFailed, StorageInUse } from './storage-errors.ts';
import type { RangeQuery, StoredRecord } from './store.ts';

type Database = Pick<Level<Buffer, Buffer>, 'getSync' | 'batch' | 'iterator' | 'close'>;
type DatabaseIterator = Iterator<Level<Buffer, Buffer>, Buffer, Buffer>;
type BatchStep =
  | { readonly type: 'put'; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: Buffer };

/** An open database, and what LevelDB leaves to its user. */
export interface StateDatabase {
  readonly level: Database;
  /** Makes the names of its files durable. */
  readonly syncNames: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Opens the database in a directory, or makes it. @throws StorageDamaged, StorageInUse, StorageFailed */
export type OpenDatabase = (directory: string) => Promise<StateDatabase>;

/**
 * The records on disk: one `level` database in a directory of its own. Each write is one atomic, synced batch that carries the
 * meta record along. After the first error of any kind nothing is read or written any more (fail-stop): LevelDB has been seen
 * to confirm writes after a full disk that were gone after the next start.
 */
export class StateStore {
  /** What was on disk when this was opened. */
  readonly metaAtOpen: StateMeta;
  readonly #database: StateDatabase;
  readonly #level: Database;
  readonly #directory: string;
  readonly #onFailure: (error: Error) => void;
  #failure: Error | undefined;

  private constructor(database: StateDatabase, directory: string, metaAtOpen: StateMeta, onFailure: (error: Error) => void) {
    this.#database = database;
    this.#level = database.level;
    this.#directory = directory;
    this.metaAtOpen = metaAtOpen;
    this.#onFailure = onFailure;
  }

  /**
   * Opens the state in `directory` (created with mode 0700) and checks all of it: every block of its tables, and every record
   * against the digest. Reads the whole state once.
   * @param onFailure - called once, at the first error of whatever kind: also a read that fails must end the process
   * @throws StorageDamaged, StorageInUse
   * @throws StorageFailed when the system refuses: no rights, disk full
   */
  static async open(
    directory: string,
    onFailure: (error: Error) => void = () => undefined,
    openDatabase: OpenDatabase = openLocal,
  ): Promise<StateStore> {
    const database = await openDatabase(directory);
    try {
      return new StateStore(database, directory, await selfCheck(database.level, directory), onFailure);
    } catch (error) {
      await database.close();
      throw openError(directory, error);
    }
  }

  /** @throws the first error this store met; StorageDamaged when the record is not what was written */
  getSync(path: string): StoredRecord | undefined {
    this.#assertSound();
    const key = Buffer.from(path);
    try {
      const bytes = this.#level.getSync(key);
      return bytes && this.#decode(key, bytes);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Rows that the query covers, ascending by path, as they are at this call: `level` takes its snapshot now, not at the first row. */
  scan(query: Pick<RangeQuery, 'prefix' | 'after'>): AsyncIterable<Row> {
    this.#assertSound();
    return this.#rows(this.#level.iterator(bounds(query)));
  }

  /** Writes everything or nothing, synced. One call at a time. Rejects with the first error this store met, for good. */
  async write(records: ReadonlyMap<string, Pending>, meta: StateMeta): Promise<void> {
    this.#assertSound();
    const steps: BatchStep[] = [{ type: 'put', key: metaKey, value: encodeMeta(meta) }];
    for (const [path, { value, revision }] of records) {
      const key = Buffer.from(path);
      steps.push(value === null ? { type: 'del', key } : { type: 'put', key, value: encodeRecord(key, { value, revision }) });
    }
    try {
      failpoint('state.before_flush');
      await this.#level.batch(steps, { sync: true });
      await this.#database.syncNames(); // LevelDB syncs a new write-ahead file but not the directory that names it
      failpoint('state.after_flush');
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** A read that comes later is refused, but is no failure of the disk. */
  async close(): Promise<void> {
    this.#failure ??= new StorageFailed(`${this.#directory} is closed`);
    await this.#database.close();
  }

  async *#rows(iterator: DatabaseIterator): AsyncGenerator<Row> {
    try {
      for (;;) {
        const entries = await iterator.nextv(rowsAtOnce);
        if (entries.length === 0) return;
        for (const [key, value] of entries) yield { path: key.toString(), ...this.#decode(key, value) };
      }
    } catch (error) {
      throw this.#fail(error);
    } finally {
      await iterator.close();
    }
  }

  #decode(key: Buffer, bytes: Buffer): StoredRecord {
    const record = decodeRecord(key, bytes);
    if (record === undefined) throw damaged(this.#directory, 'has a record with a wrong checksum');
    return record;
  }

  #assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  #fail(error: unknown): Error {
    if (this.#failure === undefined) {
      this.#failure = error instanceof StorageDamaged ? error : new StorageFailed(`${this.#directory} failed`, { cause: error });
      this.#onFailure(this.#failure);
    }
    return this.#failure;
  }
}

const rowsAtOnce = 1000;

/** LevelDB in a directory that only the user of this node may read. Every block of its tables is checked first. */
const openLocal: OpenDatabase = async (directory) => {
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
async function makePrivateDirectory(directory: string): Promise<void> {
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
async function makeFilesPrivate(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const file = join(directory, name);
    const { mode } = await stat(file);
    if ((mode & 0o077) !== 0) await chmod(file, 0o600);
  }
}

async function openLevel(directory: string): Promise<Database> {
  const names = await readdir(directory);
  const isNew = !names.includes('CURRENT');
  // LevelDB would take the other files for leftovers, delete them and begin with nothing.
  const hasData = names.some((name) => /\.(?:log|ldb|sst)$/.test(name));
  if (isNew && hasData) throw damaged(directory, 'has lost its file CURRENT');
  const level = new Level<Buffer, Buffer>(directory, {
    keyEncoding: 'buffer',
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
function openError(directory: string, error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('LEVEL_'))) return error;
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = 'code' in cause ? cause.code : undefined;
  if (code === 'LEVEL_LOCKED') return new StorageInUse(`${directory} is in use by another process`, { cause });
  if (outside.test(cause.message)) return new StorageFailed(`${directory} cannot be opened: ${cause.message}`, { cause });
  return damaged(directory, `is no database that can be read (${cause.message})`);
}

/** Sums up all records and compares with the digest that was written with them. */
async function selfCheck(level: Database, directory: string): Promise<StateMeta> {
  const meta = readMeta(level.getSync(metaKey), directory);
  let digest = emptyDigest;
  const iterator = level.iterator({ ...bounds({ prefix: '' }), fillCache: false });
  for (let entries = await iterator.nextv(rowsAtOnce); entries.length > 0; entries = await iterator.nextv(rowsAtOnce)) {
    for (const [key, bytes] of entries) {
      const path = decodePath(key);
      const record = decodeRecord(key, bytes);
      if (path === undefined || record === undefined) throw damaged(directory, 'has a record with a wrong checksum');
      digest = addToDigest(digest, recordDigest({ path, ...record }));
    }
  }
  await iterator.close();
  if (digest !== meta.digest) {
    throw damaged(directory, `has records that do not add up to the digest written at index ${meta.appliedIndex}`);
  }
  return meta;
}

function readMeta(bytes: Buffer | undefined, directory: string): StateMeta {
  if (bytes === undefined) return emptyMeta; // right for a new database; with any record in it the digest is not the empty one
  const meta = decodeMeta(bytes);
  if (meta === undefined) throw damaged(directory, 'has an applied index and digest that cannot be read');
  if ('version' in meta) throw damaged(directory, `has format ${meta.version}, which this program does not know`);
  return meta;
}

/** A path sorts behind all its beginnings; UTF-8 has no byte 0xff, so the last byte of a prefix can always be raised. */
function bounds({
  prefix,
  after = '',
}: Pick<RangeQuery, 'prefix' | 'after'>): { gt: Buffer; lt?: Buffer } | { gte: Buffer; lt?: Buffer } {
  const first = Buffer.from(prefix);
  const behind = Buffer.from(after);
  const last = first.at(-1);
  if (last === undefined) return { gt: after === '' ? metaKey : behind };
  const lt = Buffer.concat([first.subarray(0, -1), Buffer.of(last + 1)]);
  return Buffer.compare(behind, first) >= 0 ? { gt: behind, lt } : { gte: first, lt };
}
