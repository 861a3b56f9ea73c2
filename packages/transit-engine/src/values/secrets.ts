import type { Store, Transaction } from '@transitd/storage-fsm';

/** Commits a transaction that holds key material, and wipes its values. Returns the index of the log entry, or undefined on a conflict. */
export async function commitAndWipe(store: Store, transaction: Transaction): Promise<number | undefined> {
  try {
    const { outcome, index } = await store.commit(transaction);
    return outcome === 'committed' ? index : undefined;
  } finally {
    wipe(transaction.writes);
  }
}

/** Overwrites the values of records that a store returned, or of writes that it has accepted. They may hold key material. */
export function wipe(records: Iterable<{ readonly value: Uint8Array | null }>): void {
  for (const { value } of records) value?.fill(0);
}
