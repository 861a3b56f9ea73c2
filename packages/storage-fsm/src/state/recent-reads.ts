import type { StoredRecord } from '../store/store.ts';

/** The cache has two halves: the older one is dropped when the newer one has this many names. */
const halfMax = 1024;
/** Maximum length of a value that is kept, in bytes. All values together then take at most 8 MiB. */
const valueBytesMax = 4096;

/**
 * The results of recent look-ups by name, including look-ups that found nothing. One write looks up each of its names several times, and a
 * look-up in `level` takes microseconds.
 */
export class RecentReads {
  #newer = new Map<string, StoredRecord | undefined>();
  #older = new Map<string, StoredRecord | undefined>();

  /** Returns the known result of a look-up, or calls `read` and keeps its result. */
  find(name: string, read: () => StoredRecord | undefined): StoredRecord | undefined {
    const known = this.#newer.get(name);
    if (known !== undefined || this.#newer.has(name)) return known;
    const record = this.#older.has(name) ? this.#older.get(name) : read();
    if (record === undefined || record.value.length <= valueBytesMax) this.#keep(name, record);
    return record;
  }

  /** Drops the result for a name whose record has changed. */
  forget(name: string): void {
    this.#newer.delete(name);
    this.#older.delete(name);
  }

  #keep(name: string, record: StoredRecord | undefined): void {
    if (this.#newer.size >= halfMax) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(name, record);
  }
}
