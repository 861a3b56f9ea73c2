import type { Store, Transaction } from '@transitd/storage-fsm';

/** Commits a transaction that holds key material, and wipes its values. Returns the revision of the records, or undefined on a conflict. */
export async function commitAndWipe(store: Store, transaction: Transaction): Promise<number | undefined> {
  try {
    const { outcome, revision } = await store.commit(transaction);
    return outcome === 'committed' ? revision : undefined;
  } finally {
    wipe(transaction.writes);
  }
}

/** Overwrites the values of records that a store returned, or of writes that it has accepted. They may hold key material. */
export function wipe(records: Iterable<{ readonly value: Uint8Array | null }>): void {
  for (const { value } of records) value?.fill(0);
}
