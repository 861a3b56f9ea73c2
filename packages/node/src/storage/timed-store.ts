import type { BarrierOperation } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';

/** Returns a store that reports how long each operation took, failed ones included. A commit that only deletes records is a `delete`. */
export function timedStore(store: Store, observe: (operation: BarrierOperation, ms: number) => void): Store {
  const timed = async <T>(operation: BarrierOperation, work: () => Promise<T>): Promise<T> => {
    const startMs = performance.now();
    try {
      return await work();
    } finally {
      observe(operation, performance.now() - startMs);
    }
  };
  return {
    get: (path) => timed('get', () => store.get(path)),
    range: (query) => timed('list', () => store.range(query)),
    paths: (query) => timed('list', () => store.paths(query)),
    commit: (transaction) => {
      const removes = transaction.writes.length > 0 && transaction.writes.every(({ value }) => value === null);
      return timed(removes ? 'delete' : 'put', () => store.commit(transaction));
    },
    watch: (prefix, listener) => store.watch(prefix, listener),
  };
}
