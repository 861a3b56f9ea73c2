import type { Store } from '@transitd/storage-fsm';

/** Returns a store that a test can make fail or wait: each hook runs before the call is passed on. */
export function faultyStore(
  store: Store,
): Store & { beforeGet?: (path: string) => Promise<void>; beforeCommit?: () => Promise<void> } {
  const faulty: ReturnType<typeof faultyStore> = {
    async get(path) {
      await faulty.beforeGet?.(path);
      return store.get(path);
    },
    range: (query) => store.range(query),
    paths: (query) => store.paths(query),
    async commit(transaction) {
      await faulty.beforeCommit?.();
      return store.commit(transaction);
    },
    watch: (prefix, listener) => store.watch(prefix, listener),
  };
  return faulty;
}
