import type { Store } from './store.ts';
import type { Transaction } from './transaction.ts';

const attemptsMax = 5;

/**
 * Runs `attempt` until it returns a result. It returns undefined if its transaction conflicted with another write; the next attempt reads
 * the records again.
 * @throws what `conflict` returns, after too many attempts; whatever `attempt` throws
 */
export async function untilCommitted<T>(attempt: () => Promise<T | undefined>, conflict: () => Error): Promise<T> {
  for (let left = attemptsMax; left > 0; left -= 1) {
    const result = await attempt();
    if (result !== undefined) return result;
  }
  throw conflict();
}

/**
 * Commits the transaction that `next` makes from the present records, with conditions on them. Returns false if `next` finds nothing to
 * change and returns undefined.
 * @throws as {@link untilCommitted}; StoreError
 */
export const changeRecords = (
  store: Pick<Store, 'commit'>,
  next: () => Promise<Transaction | undefined>,
  conflict: () => Error,
): Promise<boolean> =>
  untilCommitted(async () => {
    const transaction = await next();
    if (transaction === undefined) return false;
    return (await store.commit(transaction)).outcome === 'committed' || undefined;
  }, conflict);
