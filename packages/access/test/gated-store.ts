import type { Store } from '@transitd/storage-fsm';

/** A store that counts its reads and whose reads can be made to wait, with what they have read in hand. */
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
