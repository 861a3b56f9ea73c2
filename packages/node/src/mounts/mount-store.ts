import type { Store } from '@transitd/storage-fsm';
import { type Mount, mountRemoved, removedPath } from './mounts.ts';

/**
 * Returns the store for the engine of a mount; it writes nothing for a removed mount. Each commit has the condition that the mount is not
 * removed, because a commit may be proposed before this node knows of the removal. So the log has no record of the mount after its removal.
 * @param isRemoved - returns whether this node knows of the removal
 * @throws MountError `mount_removed` from commits for a removed mount
 */
export function mountStore(store: Store, mount: Pick<Mount, 'path' | 'id'>, isRemoved: () => boolean): Store {
  const isPresent = { path: removedPath(mount.id), revision: 0 };
  return {
    get: (at) => store.get(at),
    range: (query) => store.range(query),
    paths: (query) => store.paths(query),
    watch: (prefix, listener) => store.watch(prefix, listener),
    async commit(transaction) {
      if (isRemoved()) throw mountRemoved(mount);
      const result = await store.commit({ ...transaction, conditions: [...transaction.conditions, isPresent] });
      if (result.outcome === 'conflict' && isRemoved()) throw mountRemoved(mount);
      return result;
    },
  };
}
