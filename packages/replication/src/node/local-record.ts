import type { LogIndex } from '@transitd/raft-core';
import { JsonRecord, type Store, StoreError, type Write } from '@transitd/storage-fsm';
import type { z } from 'zod';

/**
 * Writes one local record. With a revision, only if the record still has it; 0 means that no record exists.
 * @returns the new revision; undefined if the record has another revision
 * @throws StoreError `busy` if an unconditional write was overtaken, so nothing was written
 */
export async function writeLocal(store: Pick<Store, 'commit'>, write: Write): Promise<LogIndex>;
export async function writeLocal(store: Pick<Store, 'commit'>, write: Write, revision: LogIndex): Promise<LogIndex | undefined>;
export async function writeLocal(store: Pick<Store, 'commit'>, write: Write, revision?: LogIndex): Promise<LogIndex | undefined> {
  const conditions = revision === undefined ? [] : [{ path: write.path, revision }];
  const result = await store.commit({ conditions, writes: [write] });
  if (result.outcome === 'committed') return result.revision;
  // Each write depends on the keyring, which may have changed too often.
  if (revision === undefined) throw new StoreError('busy', 'the keyring changes too often: try again');
  return undefined;
}

interface RecordPlace<T> {
  /** The records in plaintext. */
  readonly store: Pick<Store, 'get' | 'commit' | 'watch'>;
  /** With a local prefix, unless each cluster of a set has the same record. */
  readonly path: string;
  readonly schema: z.ZodType<T>;
}

/** A small record, as JSON, which each node keeps in memory as it has applied it. */
export class LocalRecord<T extends object> {
  readonly #place: RecordPlace<T>;
  readonly #record: JsonRecord<T>;
  readonly #unwatch: () => void;
  #present: T | undefined;
  /** Number of changes that `present` may lack; the record that was there at first counts as one. */
  #changes = 1;
  /** The number of changes before the read of `present`. */
  #readAfter = 0;

  constructor(place: RecordPlace<T>) {
    this.#place = place;
    this.#record = new JsonRecord(place.path, place.schema);
    this.#unwatch = place.store.watch(place.path, () => {
      this.#changes += 1;
      void this.refresh();
    });
  }

  /** The newest record that was read; undefined if no record exists, or if its format is unknown. */
  get present(): T | undefined {
    return this.#present;
  }

  /** Reads the record, unless nothing has changed since it was read. Call it again from time to time: a sealed node cannot read. */
  async refresh(): Promise<void> {
    const { store, path } = this.#place;
    const changes = this.#changes;
    if (this.#readAfter === changes) return;
    try {
      const record = await store.get(path);
      if (changes !== this.#changes) return; // the read for that change is newer
      this.#present = record && this.#record.decoded(record.value);
      this.#readAfter = changes;
      record?.value.fill(0); // it may be a key
    } catch {
      // the next call reads it
    }
  }

  /** Drops the record from memory until the next `refresh` that can read it. */
  drop(): void {
    this.#changes += 1; // a read in progress must not bring it back
    this.#present = undefined;
  }

  /** @throws StoreError; ZodError for a value that could not be read again */
  async write(value: T): Promise<void> {
    const { store, schema } = this.#place;
    await writeLocal(store, this.#record.written(schema.parse(value)));
  }

  close(): void {
    this.#unwatch();
  }
}
