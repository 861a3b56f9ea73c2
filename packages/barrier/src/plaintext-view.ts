import type { Changes, Store } from '@transitd/storage-fsm';
import { BarrierError } from './errors.ts';
import type { Keyring } from './keyring.ts';
import { isReserved } from './paths.ts';
import { corruptValue, decryptValue, encryptValue, termOf } from './value.ts';

/** What the view needs of the barrier around it. */
export interface ViewKeys {
  /** @throws StoreError `sealed` */
  keyring(): Keyring;
  /** Loads a keyring that another node has changed. */
  reload(): Promise<void>;
}

/**
 * The store as all other parts see it: values in clear, the barrier's own records hidden. Reads and commits throw StoreError
 * `sealed` while there is no keyring; `watch` works even then, since it tells paths only and caches must never miss a change.
 */
export function plaintextView(store: Store, keys: ViewKeys): Store {
  async function decrypt(path: string, stored: Uint8Array): Promise<Buffer> {
    const term = termOf(path, stored);
    if (!keys.keyring().terms.has(term)) await keys.reload(); // written after a rotation that has not been loaded here yet
    const key = keys.keyring().terms.get(term);
    if (key === undefined) throw corruptValue(path);
    return decryptValue(key, path, stored);
  }

  return {
    async get(path) {
      refuseReserved(path);
      keys.keyring();
      const record = await store.get(path);
      const value = record && (await decrypt(path, record.value));
      keys.keyring(); // sealed meanwhile: nothing more is served
      return record && value && { value, revision: record.revision };
    },

    async range(query) {
      keys.keyring();
      const page = await store.range(query);
      const records = [];
      for (const { path, value, revision } of page.records)
        if (!isReserved(path)) records.push({ path, value: await decrypt(path, value), revision });
      keys.keyring();
      return { ...page, records };
    },

    async commit({ conditions, writes, restore }) {
      if (restore !== undefined) throw new TypeError('a restore brings ciphertext: it goes to the store below the barrier');
      for (const { path } of [...conditions, ...writes]) refuseReserved(path);
      const { newest } = keys.keyring();
      // Sealing after this line does not change the answer: the write is under way, and its outcome is a fact to be told.
      return store.commit({
        conditions,
        writes: writes.map(({ path, value }) => ({ path, value: value && encryptValue(newest, path, value) })),
      });
    },

    watch(prefix, listener) {
      return store.watch(prefix, (changes) => {
        const visible: Changes = changes === 'everything' ? changes : changes.filter(({ path }) => !isReserved(path));
        if (visible.length > 0) listener(visible);
      });
    },
  };
}

function refuseReserved(path: string): void {
  if (isReserved(path)) throw new BarrierError('reserved_path', `${path} belongs to the barrier`);
}
