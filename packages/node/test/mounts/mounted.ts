import { systemClock } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import { managedKeysOf } from '../../src/mounts/managed-keys.ts';
import { MountedEngines, type MountedEnginesOptions } from '../../src/mounts/mounted-engines.ts';
import { newMount, writtenMounts } from '../../src/mounts/mounts.ts';
import type { UseCounter } from '../../src/usage/counted-uses.ts';

/** Counts no uses of keys. */
export const uncounted: UseCounter = { count: () => undefined };

/** Mounts engines at these paths in a store, and opens them. */
export async function mounted(store: Store, ...paths: readonly string[]) {
  const mounts = paths.map((path) => newMount(path, 'svc'));
  await store.commit({ conditions: [], writes: [writtenMounts({ mounts, moves: [] })] });
  const managedKeys = managedKeysOf(store, []);
  return { mounts: await follow(store), managedKeys, uses: uncounted };
}

/** Opens the mounts in a store, as one node does. */
export const follow = (store: Store, options: Partial<MountedEnginesOptions> = {}): Promise<MountedEngines> =>
  MountedEngines.open({
    threads: 1,
    store,
    ciphertextPrefix: 'svc',
    clock: systemClock,
    managedKeysFor: () => managedKeysOf(store, []).forMount(() => []),
    onFailure: (error) => {
      throw error;
    },
    ...options,
  });
