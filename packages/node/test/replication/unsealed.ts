import type { Barrier } from '@transitd/barrier';
import type { Store } from '@transitd/storage-fsm';

/** Returns a barrier that is never sealed, with these records in plaintext. */
export const unsealed = (store: Store): Pick<Barrier, 'store' | 'onStateChange'> => ({
  store,
  onStateChange: () => () => undefined,
});
