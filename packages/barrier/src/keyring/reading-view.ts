import { type Store, StoreError } from '@transitd/storage-fsm';
import { decodeKeyring } from './keyring.ts';
import { plaintextView } from './plaintext-view.ts';

/**
 * Returns the records in plaintext, for a thread that only reads. The keys are used in the shared memory itself, so wiping it takes them
 * from every thread; reads throw StoreError `sealed` after that. A value that was written under a newer key is refused as BarrierError
 * `barrier_corrupt`. Commits throw StoreError `not_leader`.
 * @param shared - memory of a `SharedKeyring`
 * @throws BarrierError `barrier_corrupt` if the memory was wiped
 */
export function openReadingView(store: Store, shared: SharedArrayBuffer): Store {
  const encoded = Buffer.from(shared);
  const keyring = decodeKeyring(encoded);
  const view = plaintextView(store, {
    keyring: () => {
      if (encoded[0] === 0) throw new StoreError('sealed', 'transitd is sealed');
      return keyring;
    },
    keyringConditions: () => [],
    reload: async () => undefined,
  });
  const commit = (): Promise<never> => Promise.reject(new StoreError('not_leader', 'this thread changes nothing'));
  return { ...view, commit };
}
