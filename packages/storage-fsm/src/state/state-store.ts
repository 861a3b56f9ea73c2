import type { Iterator } from 'level';
import { damaged, StorageDamaged, StorageFailed } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { DigestSum } from '../store/digest.ts';
import { behindAllBelow, comparePaths } from '../store/path.ts';
import type { Row } from '../store/range.ts';
import { isName } from '../store/spaces.ts';
import type { RangeQuery, StoredRecord } from '../store/store.ts';
import type { Pending } from './overlay.ts';
import {
  type Database,
  getExactly,
  type OpenDatabase,
  openError,
  openLocal,
  type Snapshot,
  type StateDatabase,
} from './state-level.ts';
import { decodeMeta, decodeRecord, emptyMeta, encodeMeta, encodeRecord, metaKey, type StateMeta } from './state-record.ts';

type DatabaseIterator = Iterator<Database, string, Buffer>;

/** The state as one flush left it, whatever is written later. Holds disk space until it is closed. */
export interface StateSnapshot {
  readonly meta: StateMeta;
  /** All records, ascending by the bytes of their paths: many at a time, read a little ahead of whoever asks for them. */
  pages(): AsyncGenerator<readonly Row[]>;
  close(): Promise<void>;
}

/**
 * The records on disk: one `level` database in a directory of its own. Each write is one atomic, synced batch that carries the
 * meta record along. After the first error of any kind nothing is read or written any more (fail-stop): LevelDB has been seen
 * to confirm writes after a full disk that were gone after the next start.
 */
export class StateStore {
  /** What was on disk when this was opened. */
  readonly metaAtOpen: StateMeta;
  readonly #level: Database;
  readonly #database: StateDatabase;
  readonly #onFailure: (error: Error) => void;
  readonly #scans = new Set<Promise<void>>();
  #failure: Error | undefined;

  private constructor(database: StateDatabase, metaAtOpen: StateMeta, onFailure: (error: Error) => void) {
    this.#database = database;
    this.#level = database.level;
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
      return new StateStore(database, await selfCheck(database.level, directory), onFailure);
    } catch (error) {
      await database.close();
      throw openError(directory, error);
    }
  }

  /** @throws the first error this store met; StorageDamaged when the record is not what was written */
  getSync(path: string): StoredRecord | undefined {
    this.#assertSound();
    try {
      const bytes = getExactly(this.#level, path);
      return bytes && this.#decode(path, bytes);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Rows that the query covers, ascending by path, as they are at this call: `level` takes its snapshot now, not at the first row. */
  scan(query: Pick<RangeQuery, 'prefix' | 'after'>): AsyncIterable<Row> {
    this.#assertSound();
    const iterator = this.#level.iterator(bounds(query));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#scans.add(promise);
    return this.#rows(iterator, () => {
      this.#scans.delete(promise);
      resolve();
    });
  }

  /** The state as it is on disk at this call. Ends with the store, for whoever still reads then. */
  snapshot(): StateSnapshot {
    this.#assertSound();
    const snapshot = this.#level.snapshot();
    try {
      const meta = readMeta(getExactly(this.#level, metaKey, { snapshot }), this.#level.location);
      return { meta, pages: () => this.#pages(snapshot), close: () => snapshot.close() };
    } catch (error) {
      void snapshot.close();
      throw this.#fail(error);
    }
  }

  /**
   * Reads all records and compares their sum with the digest written with them, beside everything else.
   * @returns the index at which that is so; undefined when it is not: then this store has failed as {@link StorageDamaged}
   * @throws the first error this store met
   */
  async selfCheck(): Promise<StateMeta | undefined> {
    let snapshot: StateSnapshot | undefined;
    try {
      snapshot = this.snapshot();
      const digest = await sumOf(snapshot.pages());
      if (digest === snapshot.meta.digest) return snapshot.meta;
      this.#fail(wrongSum(this.#level.location, snapshot.meta));
      return undefined;
    } catch (error) {
      if (error instanceof StorageDamaged) return undefined;
      throw error;
    } finally {
      await snapshot?.close();
    }
  }

  /** Writes everything or nothing, synced. One call at a time. Rejects with the first error this store met, for good. */
  async write(records: ReadonlyMap<string, Pending>, meta: StateMeta): Promise<void> {
    this.#assertSound();
    try {
      const batch = this.#level.batch();
      batch.put(metaKey, encodeMeta(meta));
      for (const [path, { value, revision }] of records) {
        if (value === null) batch.del(path);
        else batch.put(path, encodeRecord(path, { value, revision }));
      }
      failpoint('state.before_flush');
      await batch.write({ sync: true });
      await this.#database.syncNames(); // LevelDB syncs a new write-ahead file but not the directory that names it
      failpoint('state.after_flush');
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Closes once the scans that have begun are at their end: for a state whose place another one has taken. */
  async retire(): Promise<void> {
    await Promise.all(this.#scans);
    await this.close();
  }

  /** A read that comes later is refused, but is no failure of the disk. */
  async close(): Promise<void> {
    this.#failure ??= new StorageFailed(`${this.#level.location} is closed`);
    await this.#database.close();
  }

  async *#rows(iterator: DatabaseIterator, ended: () => void): AsyncGenerator<Row> {
    try {
      for (;;) {
        const entries = await iterator.nextv(rowsAtOnce);
        if (entries.length === 0) return;
        for (const [path, value] of entries) yield { path, ...this.#decode(path, value) };
      }
    } catch (error) {
      throw this.#fail(error);
    } finally {
      ended();
      await iterator.close();
    }
  }

  async *#pages(snapshot: Snapshot): AsyncGenerator<readonly Row[]> {
    try {
      yield* pagesOf(this.#level, snapshot);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  #decode(path: string, bytes: Buffer): StoredRecord {
    return decoded(this.#level.location, path, bytes);
  }

  #assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  #fail(error: unknown): Error {
    if (this.#failure === undefined) {
      this.#failure =
        error instanceof StorageDamaged ? error : new StorageFailed(`${this.#level.location} failed`, { cause: error });
      this.#onFailure(this.#failure);
    }
    return this.#failure;
  }
}

const rowsAtOnce = 1000;

/** Sums up all records and compares with the digest that was written with them. */
async function selfCheck(level: Database, directory: string): Promise<StateMeta> {
  const meta = readMeta(getExactly(level, metaKey), directory);
  const snapshot = level.snapshot();
  try {
    if ((await sumOf(pagesOf(level, snapshot))) !== meta.digest) throw wrongSum(directory, meta);
    return meta;
  } finally {
    await snapshot.close();
  }
}

async function sumOf(pages: AsyncIterable<readonly Row[]>): Promise<bigint> {
  const sum = new DigestSum();
  for await (const rows of pages) for (const row of rows) sum.add(row);
  return sum.digest;
}

/** The next page is on its way while one is looked at. @throws StorageDamaged, and what LevelDB throws */
async function* pagesOf(level: Database, snapshot: Snapshot): AsyncGenerator<readonly Row[]> {
  const iterator = level.iterator({ ...everything, snapshot });
  // U+FFFD also stands for bytes that are no text.
  const isKept = (path: string) =>
    isName(path) && (!path.includes('\ufffd') || getExactly(level, path, { snapshot }) !== undefined);
  try {
    for (let next = iterator.nextv(rowsAtOnce); ; ) {
      const entries = await next;
      if (entries.length === 0) return;
      next = iterator.nextv(rowsAtOnce);
      next.catch(() => undefined); // whoever asks for that page hears of it
      yield entries.map(([path, bytes]) => {
        if (!isKept(path)) throw damaged(level.location, 'has a record under a name that is none');
        const { value, revision } = decoded(level.location, path, bytes);
        return { path, value, revision };
      });
    }
  } finally {
    await iterator.close();
  }
}

function decoded(directory: string, path: string, bytes: Buffer): StoredRecord {
  const record = decodeRecord(path, bytes);
  if (record === undefined) throw damaged(directory, 'has a record with a wrong checksum');
  return record;
}

const wrongSum = (directory: string, { appliedIndex }: StateMeta) =>
  damaged(directory, `has records that do not add up to the digest written at index ${appliedIndex}`);

function readMeta(bytes: Buffer | undefined, directory: string): StateMeta {
  if (bytes === undefined) return emptyMeta; // right for a new database; with any record in it the digest is not the empty one
  const meta = decodeMeta(bytes);
  if (meta === undefined) throw damaged(directory, 'has an applied index and digest that cannot be read');
  if ('version' in meta) throw damaged(directory, `has format ${meta.version}, which this program does not know`);
  return meta;
}

function bounds({
  prefix,
  after = '',
}: Pick<RangeQuery, 'prefix' | 'after'>): { gt: string; lt?: string } | { gte: string; lt?: string } {
  if (prefix === '') return { gt: after === '' ? metaKey : after };
  const behind = behindAllBelow(prefix);
  const lt = behind === undefined ? {} : { lt: behind };
  return comparePaths(after, prefix) >= 0 ? { gt: after, ...lt } : { gte: prefix, ...lt };
}

/** All records, of which many are read at once and none is looked for again: each read takes a turn of a thread, whatever it brings. */
const everything = { ...bounds({ prefix: '' }), fillCache: false, highWaterMarkBytes: 256 * 1024 };
