import type { LogIndex } from '@transitd/raft-core';
import { fieldsIn } from './json-object.ts';
import type { Store } from './store.ts';
import type { Write } from './write.ts';

const format = 1;

/** The part of a schema of Zod that checks fields. */
interface Schema<T> {
  safeParse(fields: unknown): { readonly data?: T | undefined };
}

/** A record of JSON text with a format number. */
export class JsonRecord<T extends object> {
  readonly path: string;
  readonly #schema: Schema<T>;

  constructor(path: string, schema: Schema<T>) {
    this.path = path;
    this.#schema = schema;
  }

  /** Returns the value and its revision; undefined if no record exists. @throws StoreError; Error for an unknown format */
  async read(store: Pick<Store, 'get'>): Promise<{ readonly value: T; readonly revision: LogIndex } | undefined> {
    const record = await store.get(this.path);
    if (record === undefined) return undefined;
    const value = this.decoded(record.value);
    record.value.fill(0);
    // Without the error of the schema, which could contain a secret.
    if (value === undefined) throw new Error(`the record ${this.path} has an unknown format`);
    return { value, revision: record.revision };
  }

  /** Returns the value in a record; undefined for an unknown format. */
  decoded(bytes: Uint8Array): T | undefined {
    const { format: stored, ...fields } = fieldsIn(bytes);
    return stored === format ? this.#schema.safeParse(fields).data : undefined;
  }

  written(value: T): Write {
    return { path: this.path, value: Buffer.from(JSON.stringify({ format, ...value })) };
  }
}
