import { type Changes, type Condition, requireOneKind, type Store, StoreError } from '@transitd/storage-fsm';
import { BarrierError } from '../records/errors.ts';
import { isReserved } from '../records/paths.ts';
import type { Keyring } from './keyring.ts';
import { corruptValue, decryptValue, encryptValue, termOf } from './value.ts';

const commitAttemptsMax = 5;

/** The keys that the view gets from the barrier. */
export interface ViewKeys {
  /** @throws StoreError `sealed` */
  keyring(): Keyring;
  /** Returns conditions that hold while the stored keyring is this one. @throws StoreError `sealed` */
  keyringConditions(): readonly Condition[];
  /** Loads the keyring again after another node has changed it. */
  reload(): Promise<void>;
}

/**
 * Returns the store as all other packages see it: values in plaintext, the barrier's own records hidden. Reads and commits throw
 * StoreError `sealed` while no keyring is loaded. `watch` works even then: it reports paths only, and caches must never miss a
 * change.
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
      // A restore may have brought a different keyring, in which this term is a different key.
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
      keys.keyring(); // throws if the barrier was sealed meanwhile
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

    async paths(query) {
      keys.keyring();
      const page = await store.paths(query);
      keys.keyring();
      return { ...page, paths: page.paths.filter((path) => !isReserved(path)) };
    },

    async commit(transaction) {
      requireOneKind(transaction); // steps of a restore consist of ciphertext
      const { conditions, writes } = transaction;
      for (const { path } of [...conditions, ...writes]) refuseReserved(path);
      for (let tries = 1; ; tries += 1) {
        const { newest } = keys.keyring();
        const keyring = keys.keyringConditions();
        // Sealing after this line does not change the result: the write is in flight, and its outcome must be reported.
        const result = await store.commit({
          conditions: [...keyring, ...conditions],
          writes: writes.map(({ path, value }) => ({ path, value: value && encryptValue(newest, path, value) })),
        });
        if (result.outcome === 'committed') return result;
        // The condition failed because the keyring was replaced: encrypt again, otherwise nobody could read the value.
        if (tries === commitAttemptsMax || (await hold(store, keyring))) {
          // Callers without conditions of their own expect no conflict: they would report success.
          if (conditions.length === 0) throw new StoreError('busy', 'the keyring changes too often; try again');
          return result;
        }
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

async function hold(store: Pick<Store, 'get'>, conditions: readonly Condition[]): Promise<boolean> {
  for (const { path, revision } of conditions) if (((await store.get(path))?.revision ?? 0) !== revision) return false;
  return true;
}

function refuseReserved(path: string): void {
  if (isReserved(path)) throw new BarrierError('reserved_path', `${path} is reserved for the barrier`);
}
