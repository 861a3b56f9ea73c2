import type { Iterator } from 'level';
import { damaged, StorageDamaged, StorageFailed } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { DigestSum } from '../store/digest.ts';
import { comparePaths, prefixUpperBound } from '../store/path.ts';
import type { Row } from '../store/range.ts';
import { isName } from '../store/spaces.ts';
import type { PathPage, RangeQuery, StoredRecord } from '../store/store.ts';
import type { Pending } from './overlay.ts';
import { RecentReads } from './recent-reads.ts';
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

/** The state as of one flush, unaffected by later writes. Holds disk space until it is closed. */
export interface StateSnapshot {
  readonly meta: StateMeta;
  /** Returns the record with this name. @throws StorageDamaged, and other errors of the store */
  read(name: string): StoredRecord | undefined;
  /** Yields all records by name, ascending by UTF-8 bytes, in pages. Reads one page ahead of the caller. */
  pages(): AsyncGenerator<readonly Row[]>;
  close(): Promise<void>;
}

/**
 * The records on disk: one `level` database in a directory of its own. Each write is one atomic, synced batch that includes the meta
 * record. After the first error of any kind, all reads and writes fail (fail-stop). The reason: on a full disk, LevelDB confirmed writes
 * that were lost after the next start.
 */
export class StateStore {
  /** The meta record at the time of opening. */
  readonly metaAtOpen: StateMeta;
  readonly #level: Database;
  readonly #database: StateDatabase;
  readonly #onFailure: (error: Error) => void;
  readonly #scans = new Set<Promise<void>>();
  readonly #recent = new RecentReads();
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
   * @param onFailure - called once, at the first error of any kind: a failed read must end the process too
   * @throws StorageDamaged, StorageInUse
   * @throws StorageFailed when the system refuses: missing permissions, disk full
   */
  static async open(
    directory: string,
    onFailure: (error: Error) => void = () => undefined,
    openDatabase: OpenDatabase = openLocal,
  ): Promise<StateStore> {
    const database = await openDatabase(directory);
    try {
      return new StateStore(database, await checkDigest(database.level, directory), onFailure);
    } catch (error) {
      await database.close();
      throw openError(directory, error);
    }
  }

  /** Returns the record itself, not a copy. @throws the first error of this store; StorageDamaged for a damaged record */
  getSync(path: string): StoredRecord | undefined {
    this.#assertSound();
    try {
      return this.#recent.find(path, () => {
        const bytes = getExactly(this.#level, path);
        return bytes && this.#decode(path, bytes);
      });
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Returns the rows that the query covers, ascending by name, as of this call: `level` takes its snapshot now, not at the first row. */
  scan(query: Pick<RangeQuery, 'prefix' | 'after'>): AsyncIterable<Row> {
    this.#assertSound();
    return this.#rows(this.#level.iterator(bounds(query)), this.#beginScan());
  }

  /** Returns up to `limit` names that the query covers, ascending, as of this call. Reads no values. */
  async names(query: Pick<RangeQuery, 'prefix' | 'after'>, limit: number): Promise<PathPage> {
    this.#assertSound();
    const iterator = this.#level.keys({ ...bounds(query), limit, highWaterMarkBytes: 256 * 1024 });
    const ended = this.#beginScan();
    const names: string[] = [];
    try {
      while (names.length < limit) {
        const more = await iterator.nextv(limit - names.length);
        if (more.length === 0) return { paths: names };
        names.push(...more);
      }
      return { paths: names, next: names.at(-1) ?? '' };
    } catch (error) {
      throw this.#fail(error);
    } finally {
      ended();
      await iterator.close();
    }
  }

  /** Returns the state on disk as of this call. Closing the store closes this snapshot too, even in the middle of a read. */
  snapshot(): StateSnapshot {
    this.#assertSound();
    const snapshot = this.#level.snapshot();
    try {
      const meta = readMeta(getExactly(this.#level, metaKey, { snapshot }), this.#level.location);
      const read = (name: string) => this.#read(name, snapshot);
      return { meta, read, pages: () => this.#pages(snapshot), close: () => snapshot.close() };
    } catch (error) {
      void snapshot.close();
      throw this.#fail(error);
    }
  }

  /**
   * Reads all records and compares their digest with the stored one, while the store stays in use.
   * @returns the meta record that matches; undefined on a mismatch, after which this store has failed with {@link StorageDamaged}
   * @throws the first error of this store
   */
  async checkDigest(): Promise<StateMeta | undefined> {
    let snapshot: StateSnapshot | undefined;
    try {
      snapshot = this.snapshot();
      const digest = await digestOf(snapshot.pages());
      if (digest === snapshot.meta.digest) return snapshot.meta;
      this.#fail(digestMismatch(this.#level.location, snapshot.meta));
      return undefined;
    } catch (error) {
      if (error instanceof StorageDamaged) return undefined;
      throw error;
    } finally {
      await snapshot?.close();
    }
  }

  /**
   * Writes everything or nothing, and syncs. The caller makes one call at a time, and does not read the written records before the call
   * resolves. After an error, every further call rejects with that error.
   */
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
      for (const path of records.keys()) this.#recent.forget(path);
      await this.#database.syncNames(); // LevelDB syncs a new write-ahead file, but not the directory that contains its name
      failpoint('state.after_flush');
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Closes a replaced state once the scans that have begun are finished. */
  async closeAfterScans(): Promise<void> {
    await Promise.all(this.#scans);
    await this.close();
  }

  /** Closes the store. Later reads are refused without calling `onFailure`. */
  async close(): Promise<void> {
    this.#failure ??= new StorageFailed(`${this.#level.location} is closed`);
    await this.#database.close();
  }

  /** Keeps a replaced store open until the returned function is called. */
  #beginScan(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#scans.add(promise);
    return () => {
      this.#scans.delete(promise);
      resolve();
    };
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

  #read(name: string, snapshot: Snapshot): StoredRecord | undefined {
    try {
      const bytes = getExactly(this.#level, name, { snapshot });
      return bytes && this.#decode(name, bytes);
    } catch (error) {
      throw this.#fail(error);
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

/** Compares the digest of all records with the stored one. @throws StorageDamaged on a mismatch */
async function checkDigest(level: Database, directory: string): Promise<StateMeta> {
  const meta = readMeta(getExactly(level, metaKey), directory);
  const snapshot = level.snapshot();
  try {
    if ((await digestOf(pagesOf(level, snapshot))) !== meta.digest) throw digestMismatch(directory, meta);
    return meta;
  } finally {
    await snapshot.close();
  }
}

async function digestOf(pages: AsyncIterable<readonly Row[]>): Promise<bigint> {
  const sum = new DigestSum();
  for await (const rows of pages) for (const row of rows) sum.add(row);
  return sum.digest;
}

/** Reads the next page while the caller handles the current one. @throws StorageDamaged, and errors of LevelDB */
async function* pagesOf(level: Database, snapshot: Snapshot): AsyncGenerator<readonly Row[]> {
  const iterator = level.iterator({ ...everything, snapshot });
  // LevelDB's decoder yields U+FFFD for bytes that are not UTF-8, so such a name is looked up by its exact bytes.
  const isIntactName = (path: string) =>
    isName(path) && (!path.includes('\ufffd') || getExactly(level, path, { snapshot }) !== undefined);
  try {
    for (let next = iterator.nextv(rowsAtOnce); ; ) {
      const entries = await next;
      if (entries.length === 0) return;
      next = iterator.nextv(rowsAtOnce);
      next.catch(() => undefined); // the next iteration reports the error
      yield entries.map(([path, bytes]) => {
        if (!isIntactName(path)) throw damaged(level.location, 'has a record with an invalid name');
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

const digestMismatch = (directory: string, { appliedIndex }: StateMeta) =>
  damaged(directory, `has records that do not match the state digest stored at index ${appliedIndex}`);

function readMeta(bytes: Buffer | undefined, directory: string): StateMeta {
  if (bytes === undefined) return emptyMeta; // correct for a new database; if there are records but no meta record, the digest check fails
  const meta = decodeMeta(bytes);
  if (meta === undefined) throw damaged(directory, 'has an unreadable applied index and digest');
  if ('version' in meta) throw damaged(directory, `has format ${meta.version}, which this version cannot read`);
  return meta;
}

function bounds({
  prefix,
  after = '',
}: Pick<RangeQuery, 'prefix' | 'after'>): { gt: string; lt?: string } | { gte: string; lt?: string } {
  if (prefix === '') return { gt: after === '' ? metaKey : after };
  const end = prefixUpperBound(prefix);
  const lt = end === undefined ? {} : { lt: end };
  return comparePaths(after, prefix) >= 0 ? { gt: after, ...lt } : { gte: prefix, ...lt };
}

/**
 * Reads all records without filling the cache, and many at a time, because each read takes a turn of a worker thread however much it
 * returns.
 */
const everything = { ...bounds({ prefix: '' }), fillCache: false, highWaterMarkBytes: 256 * 1024 };
