import type { Store } from '@transitd/storage-fsm';
import { AccessError, recordUnreadable } from '../values/errors.ts';

export const tokenKeyBytes = 32;
const format = 1;

/** Encodes a key as `format u8 | key`: bytes instead of JSON, so that it can be wiped. */
export const encodeTokenKey = (key: Uint8Array): Buffer => Buffer.concat([Buffer.of(format), key]);

/** Shares memory with `stored`. @throws AccessError `record_unreadable` */
function decodeTokenKey(stored: Uint8Array): Uint8Array {
  if (stored[0] !== format || stored.length !== 1 + tokenKeyBytes) throw recordUnreadable();
  return stored.subarray(1);
}

/** A key in the store, such as the key that hashes tokens and accessors. It is read once, cached, and wiped by `forget`. */
export class StoredKey {
  readonly #store: Store;
  readonly #path: string;
  #key: Uint8Array | undefined;
  /** Increases when the key is forgotten, so that a read in progress does not cache it again. */
  #forgotten = 0;

  constructor(store: Store, path: string) {
    this.#store = store;
    this.#path = path;
  }

  /** The key if it is cached. */
  get cached(): Uint8Array | undefined {
    return this.#key;
  }

  /** Returns the key. @throws AccessError `not_initialized`, `record_unreadable`; StoreError */
  async read(): Promise<Uint8Array> {
    const key = await this.find();
    if (key === undefined) throw new AccessError('not_initialized', 'there is no token key yet');
    return key;
  }

  /** Returns the key; undefined when it does not exist yet. @throws AccessError `record_unreadable`; StoreError */
  async find(): Promise<Uint8Array | undefined> {
    if (this.#key !== undefined) return this.#key;
    const forgotten = this.#forgotten;
    const record = await this.#store.get(this.#path);
    if (record === undefined) return undefined;
    const key = decodeTokenKey(record.value);
    if (forgotten === this.#forgotten) this.#key = key;
    return key;
  }

  forget(): void {
    this.#key?.fill(0);
    this.#key = undefined;
    this.#forgotten += 1;
  }
}
