import type { Changes, Store } from '@transitd/storage-fsm';
import { BarrierError } from '../errors.ts';
import { isReserved, keyringPath } from '../paths.ts';
import { type Keyring, keyringCommitAttempts } from './keyring.ts';
import { corruptValue, decryptValue, encryptValue, termOf } from './value.ts';

/** What the view needs of the barrier around it. */
export interface ViewKeys {
  /** @throws StoreError `sealed` */
  keyring(): Keyring;
  /** Of the record that it came from. @throws StoreError `sealed` */
  keyringRevision(): number;
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
    try {
      return decryptValue(key, path, stored);
    } catch (error) {
      // A restore may have brought another keyring, in which another key has the number of this term.
      await keys.reload();
      const restored = keys.keyring().terms.get(term);
      if (restored === undefined || restored === key) throw error;
      return decryptValue(restored, path, stored);
    }
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
      for (let tries = 1; ; tries += 1) {
        const { newest } = keys.keyring();
        const revision = keys.keyringRevision();
        // Sealing after this line does not change the answer: the write is under way, and its outcome is a fact to be told.
        const result = await store.commit({
          conditions: [{ path: keyringPath, revision }, ...conditions],
          writes: writes.map(({ path, value }) => ({ path, value: value && encryptValue(newest, path, value) })),
        });
        if (result.outcome === 'committed' || tries === keyringCommitAttempts) return result;
        // A write under a keyring that a restore has replaced meanwhile could never be read again: it is made anew.
        if ((await store.get(keyringPath))?.revision === revision) return result;
        await keys.reload();
      }
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
