import { failpoint } from './failpoint.ts';
import type { Row } from './range.ts';
import { type BatchStep, type Database, makePrivateDirectory, openError, openLevel } from './state-level.ts';
import { encodeMeta, encodeRecord, metaKey, type StateMeta } from './state-record.ts';

/** Bytes of values gathered for one batch: each is synced, as every write of a state is (a later sync does not cover an earlier file). */
const batchBytes = 1024 * 1024;

/** Fills the state directory of a new generation. Until `finish` it is no state: there is no meta record. */
export class StateLoader {
  readonly #level: Database;
  #steps: BatchStep[] = [];
  #bytes = 0;
  /** The batch that is on its way to the disk while the next one is gathered. */
  #writing: Promise<void> = Promise.resolve();

  private constructor(level: Database) {
    this.#level = level;
  }

  /** @param directory - empty, or not there yet */
  static async create(directory: string): Promise<StateLoader> {
    await makePrivateDirectory(directory);
    return new StateLoader(await openLevel(directory));
  }

  /** Keeps no more than two batches in memory. @throws StorageFailed */
  async add(rows: readonly Row[]): Promise<void> {
    for (const { path, value, revision } of rows) {
      const key = Buffer.from(path);
      this.#steps.push({ type: 'put', key, value: encodeRecord(key, { value, revision }) });
      this.#bytes += value.length;
      if (this.#bytes >= batchBytes) await this.#write();
    }
  }

  /** Everything is on disk, and its meta record with it; the database is closed. @throws StorageFailed */
  async finish(meta: StateMeta): Promise<void> {
    this.#steps.push({ type: 'put', key: metaKey, value: encodeMeta(meta) });
    await this.#write();
    await this.#writing;
    await this.#level.close();
  }

  /** Lets go of the directory; what is in it is rubbish. */
  async abandon(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#level.close();
  }

  /** Begins the next batch once the one before it is on the disk. */
  async #write(): Promise<void> {
    const steps = this.#steps;
    this.#steps = [];
    this.#bytes = 0;
    await this.#writing;
    this.#writing = this.#store(steps);
    this.#writing.catch(() => undefined); // whoever waits for it hears of it
  }

  async #store(steps: BatchStep[]): Promise<void> {
    failpoint('snapshot.before_batch');
    try {
      await this.#level.batch(steps, { sync: true });
    } catch (error) {
      throw openError(this.#level.location, error);
    }
  }
}
