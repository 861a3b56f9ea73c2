import { randomUUID } from 'node:crypto';
import { pagesBelow, type Store, type Transaction, untilCommitted } from '@transitd/storage-fsm';
import { DamagedRecord, TransitError } from '../values/errors.ts';
import { commitAndWipe, wipe } from '../values/secrets.ts';
import { decodeManagedKeyRecord, encodeManagedKeyRecord, type ManagedKeyRecord } from './managed-key-record.ts';
import { isManagedKeyName, type ManagedKeyRequest, managedKeyRecord } from './managed-key-request.ts';

const prefix = 'managed-keys/pkcs11/';
const idPrefix = 'managed-keys/id/';
const pathOf = (name: string): string => prefix + name;
const idPathOf = (id: string): string => idPrefix + id;

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * The configuration of managed keys of all mounts, by name and by id; the keys themselves stay in their systems.
 * A refusal is a {@link TransitError}; errors of the store pass through.
 */
export class ManagedKeyRegistry {
  readonly #store: Store;
  readonly #libraries: readonly string[];

  /** @param options.libraries - names of the libraries in the configuration */
  constructor({ store, libraries }: { readonly store: Store; readonly libraries: readonly string[] }) {
    this.#store = store;
    this.#libraries = libraries;
  }

  /** Creates a managed key, or changes an existing one. @throws TransitError `invalid_request`, `too_many_conflicts` */
  async write(name: string, request: ManagedKeyRequest): Promise<void> {
    if (!isManagedKeyName(name)) throw new TransitError('invalid_request', 'invalid managed key name');
    await this.#change(async () => {
      const stored = await this.#stored(name);
      const present = stored?.record;
      const id = present?.id ?? randomUUID();
      const record = managedKeyRecord({ id, name }, request, { present, libraries: this.#libraries });
      return {
        conditions: [{ path: pathOf(name), revision: stored?.revision ?? 0 }],
        writes: [
          { path: pathOf(name), value: encodeManagedKeyRecord(record) },
          { path: idPathOf(id), value: Buffer.from(name) },
        ],
      };
    });
  }

  /** @throws TransitError `not_found` */
  async read(name: string): Promise<ManagedKeyRecord> {
    const stored = await this.#stored(name);
    if (stored === undefined) throw new TransitError('not_found', 'no such managed key');
    return stored.record;
  }

  /** Returns the names, sorted. */
  async list(): Promise<string[]> {
    const names: string[] = [];
    for await (const records of pagesBelow(this.#store, { prefix })) {
      for (const { path } of records) names.push(path.slice(prefix.length));
      wipe(records);
    }
    return names;
  }

  /**
   * Deletes the configuration of a managed key if it exists. The key stays in its system; versions that reference it can no longer
   * be used.
   */
  async delete(name: string): Promise<void> {
    await this.#change(async () => {
      const stored = await this.#stored(name);
      if (stored === undefined) return undefined;
      return {
        conditions: [{ path: pathOf(name), revision: stored.revision }],
        writes: [
          { path: pathOf(name), value: null },
          { path: idPathOf(stored.record.id), value: null },
        ],
      };
    });
  }

  /** Returns the managed key with this id, or undefined. */
  async byId(id: string): Promise<ManagedKeyRecord | undefined> {
    const place = uuid.test(id) ? await this.#store.get(idPathOf(id)) : undefined;
    if (place === undefined) return undefined;
    const stored = await this.#stored(Buffer.from(place.value).toString());
    // Between the two reads, the name may have been given to another key.
    return stored?.record.id === id ? stored.record : undefined;
  }

  async byName(name: string): Promise<ManagedKeyRecord | undefined> {
    return (await this.#stored(name))?.record;
  }

  async #stored(name: string): Promise<{ readonly record: ManagedKeyRecord; readonly revision: number } | undefined> {
    const stored = isManagedKeyName(name) ? await this.#store.get(pathOf(name)) : undefined;
    if (stored === undefined) return undefined;
    const record = decodeManagedKeyRecord(stored.value);
    wipe([stored]);
    if (record.name !== name) throw new DamagedRecord('the name in a managed key record differs from the name in its path');
    return { record, revision: stored.revision };
  }

  /** Commits the transaction that `next` makes from the present records, if it makes one. @throws TransitError `too_many_conflicts` */
  async #change(next: () => Promise<Transaction | undefined>): Promise<void> {
    const attempt = async () => {
      const transaction = await next();
      return transaction === undefined ? 'unchanged' : commitAndWipe(this.#store, transaction);
    };
    await untilCommitted(attempt, () => {
      return new TransitError('too_many_conflicts', 'the managed key changed too often in the meantime; nothing was done');
    });
  }
}
