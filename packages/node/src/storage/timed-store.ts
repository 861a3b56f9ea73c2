import type { BarrierOperation } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';

/** A store that reports how long each operation took, in milliseconds, also of those that fail. A commit that only removes is a `delete`. */
export function timedStore(store: Store, observe: (operation: BarrierOperation, ms: number) => void): Store {
  const timed = async <T>(operation: BarrierOperation, work: () => Promise<T>): Promise<T> => {
    const begunMs = performance.now();
    try {
      return await work();
    } finally {
      observe(operation, performance.now() - begunMs);
    }
  };
  return {
    get: (path) => timed('get', () => store.get(path)),
    range: (query) => timed('list', () => store.range(query)),
    commit: (transaction) => {
      const removes = transaction.writes.length > 0 && transaction.writes.every(({ value }) => value === null);
      return timed(removes ? 'delete' : 'put', () => store.commit(transaction));
    },
    watch: (prefix, listener) => store.watch(prefix, listener),
  };
}
