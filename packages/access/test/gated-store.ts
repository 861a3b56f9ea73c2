import type { Store } from '@transitd/storage-fsm';

/** Wraps a store to count its reads, and to pause them after the record was read. */
export function gatedStore(store: Store): Store & { reads: number; afterGet?: (path: string) => Promise<void> } {
  const gated: ReturnType<typeof gatedStore> = {
    ...store,
    reads: 0,
    async get(path) {
      gated.reads += 1;
      const record = await store.get(path);
      await gated.afterGet?.(path);
      return record;
    },
  };
  return gated;
}
