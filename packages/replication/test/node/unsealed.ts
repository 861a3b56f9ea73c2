import type { Barrier } from '@transitd/barrier';
import type { Store } from '@transitd/storage-fsm';

/** Returns a barrier that is never sealed, with these records in plaintext. */
export const unsealed = (store: Store): Pick<Barrier, 'state' | 'store' | 'onStateChange'> => ({
  state: { initialized: true, sealed: false },
  store,
  onStateChange: () => () => undefined,
});
