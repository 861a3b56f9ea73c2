import { failpoint } from '../failpoint.ts';
import type { Row } from '../store/range.ts';
import { type Batch, type OpenDatabase, openError, openLocal, type StateDatabase } from './state-level.ts';
import { encodeMeta, encodeRecord, metaKey, type StateMeta } from './state-record.ts';

/** Bytes of values per batch. Each batch is synced, because the sync of a later batch does not cover files that an earlier batch wrote. */
const batchBytes = 1024 * 1024;

/** Fills the state directory of a new generation. Before `finish` the directory has no meta record, so it does not count as a state. */
export class StateLoader {
  readonly #database: StateDatabase;
  #batch: Batch | undefined;
  #bytes = 0;
  /** Settles when the previous batch is on disk. In the meantime the next batch is filled. */
  #writing: Promise<void> = Promise.resolve();

  private constructor(database: StateDatabase) {
    this.#database = database;
  }

  /** @param directory - empty or missing */
  static async create(directory: string, openDatabase: OpenDatabase = openLocal): Promise<StateLoader> {
    return new StateLoader(await openDatabase(directory));
  }

  /** Adds records to the current batch while the previous one is being written. @throws StorageFailed */
  async add(rows: readonly Row[]): Promise<void> {
    for (const { path, value, revision } of rows) {
      this.#openBatch().put(path, encodeRecord(path, { value, revision }));
      this.#bytes += value.length;
      if (this.#bytes >= batchBytes) await this.#write();
    }
  }

  /** Writes the last batch and the meta record to disk and closes the database. @throws StorageFailed */
  async finish(meta: StateMeta): Promise<void> {
    this.#openBatch().put(metaKey, encodeMeta(meta));
    await this.#write();
    await this.#writing;
    await this.#database.close();
  }

  /** Closes the database; the caller deletes the directory. */
  async abandon(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#database.close();
  }

  #openBatch(): Batch {
    this.#batch ??= this.#database.level.batch();
    return this.#batch;
  }

  /** Waits until the previous batch is on disk, then starts to write the current one. */
  async #write(): Promise<void> {
    const batch = this.#openBatch();
    this.#batch = undefined;
    this.#bytes = 0;
    await this.#writing;
    this.#writing = this.#store(batch);
    this.#writing.catch(() => undefined); // the next `#write`, or `finish`, reports the error
  }

  async #store(batch: Batch): Promise<void> {
    failpoint('snapshot.before_batch');
    const { level } = this.#database;
    try {
      await batch.write({ sync: true });
    } catch (error) {
      throw openError(level.location, error);
    }
  }
}
