import { noHandler } from '@transitd/http';
import type { Store } from '@transitd/storage-fsm';
import { type Mount, removedPath } from './mounts.ts';

/**
 * The store as the engine of a mount sees it: nothing is written for a mount that is removed. The condition holds for what was
 * proposed before the removal was known here; so behind a removal in the log no record of the mount comes up any more.
 * @param isGone - whether the removal is known here
 * @throws RequestError `no_handler` from commits for a mount that is gone
 */
export function fenced(store: Store, { path, id }: Pick<Mount, 'path' | 'id'>, isGone: () => boolean): Store {
  const isPresent = { path: removedPath(id), revision: 0 };
  return {
    get: (at) => store.get(at),
    range: (query) => store.range(query),
    watch: (prefix, listener) => store.watch(prefix, listener),
    async commit(transaction) {
      if (isGone()) throw noHandler(`${path}/`);
      const result = await store.commit({ ...transaction, conditions: [...transaction.conditions, isPresent] });
      if (result.outcome === 'conflict' && isGone()) throw noHandler(`${path}/`);
      return result;
    },
  };
}
