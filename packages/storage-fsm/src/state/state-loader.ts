import { failpoint } from '../failpoint.ts';
import type { Row } from '../store/range.ts';
import { type Batch, type OpenDatabase, openError, openLocal, type StateDatabase } from './state-level.ts';
import { encodeMeta, encodeRecord, metaKey, type StateMeta } from './state-record.ts';

/** Bytes of values gathered for one batch: each is synced, as every write of a state is (a later sync does not cover an earlier file). */
const batchBytes = 1024 * 1024;

/** Fills the state directory of a new generation. Until `finish` it is no state: there is no meta record. */
export class StateLoader {
  readonly #database: StateDatabase;
  #batch: Batch | undefined;
  #bytes = 0;
  /** The batch that is on its way to the disk while the next one is gathered. */
  #writing: Promise<void> = Promise.resolve();

  private constructor(database: StateDatabase) {
    this.#database = database;
  }

  /** @param directory - empty, or not there yet */
  static async create(directory: string, openDatabase: OpenDatabase = openLocal): Promise<StateLoader> {
    return new StateLoader(await openDatabase(directory));
  }

  /** Gathers one batch while another one is on its way. @throws StorageFailed */
  async add(rows: readonly Row[]): Promise<void> {
    for (const { path, value, revision } of rows) {
      this.#gathered().put(path, encodeRecord(path, { value, revision }));
      this.#bytes += value.length;
      if (this.#bytes >= batchBytes) await this.#write();
    }
  }

  /** Everything is on disk, and its meta record with it; the database is closed. @throws StorageFailed */
  async finish(meta: StateMeta): Promise<void> {
    this.#gathered().put(metaKey, encodeMeta(meta));
    await this.#write();
    await this.#writing;
    await this.#database.close();
  }

  /** Lets go of the directory; what is in it is rubbish. */
  async abandon(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#database.close();
  }

  #gathered(): Batch {
    this.#batch ??= this.#database.level.batch();
    return this.#batch;
  }

  /** Begins the next batch once the one before it is on the disk. */
  async #write(): Promise<void> {
    const batch = this.#gathered();
    this.#batch = undefined;
    this.#bytes = 0;
    await this.#writing;
    this.#writing = this.#store(batch);
    this.#writing.catch(() => undefined); // whoever waits for it hears of it
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
