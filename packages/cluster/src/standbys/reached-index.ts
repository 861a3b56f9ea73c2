import type { LogIndex } from '@transitd/raft-core';
import type { Replica } from '@transitd/storage-fsm';

/** Poll interval: entries that change no record notify no watcher. */
const pollMs = 20;

/** Resolves with true as soon as this node has applied `index`, or with false after `withinMs`. */
export function reachedIndex(replica: Pick<Replica, 'status' | 'watch'>, index: LogIndex, withinMs: number): Promise<boolean> {
  const isReached = (): boolean => replica.status().appliedIndex >= index;
  if (isReached()) return Promise.resolve(true);
  return new Promise((resolve) => {
    const end = (): void => {
      clearInterval(poll);
      clearTimeout(deadline);
      unwatch();
      resolve(isReached());
    };
    const endWhenReached = (): void => {
      if (isReached()) end();
    };
    const unwatch = replica.watch('', endWhenReached);
    const poll = setInterval(endWhenReached, pollMs);
    const deadline = setTimeout(end, withinMs);
  });
}
