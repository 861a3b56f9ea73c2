import type { Store, Transaction } from '@transitd/storage-fsm';
import { wipe } from './keys/version-record.ts';

/** The index of the log entry, or undefined on a conflict. What was to be written is overwritten here, material among it. */
export async function commitSecrets(store: Store, transaction: Transaction): Promise<number | undefined> {
  try {
    const { outcome, index } = await store.commit(transaction);
    return outcome === 'committed' ? index : undefined;
  } finally {
    wipe(transaction.writes);
  }
}
