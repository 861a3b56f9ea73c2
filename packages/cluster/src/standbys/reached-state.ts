import { setTimeout as pause } from 'node:timers/promises';
import type { LogIndex } from '@transitd/raft-core';
import type { Replica, ServiceIndex } from '@transitd/storage-fsm';
import type { Engine } from '../ports/storage-port.ts';
import { type HistoryOf, type IndexPlace, placeOf } from './service-history.ts';

/** Poll interval: entries that change no record notify no watcher. */
const pollMs = 20;

/** `behind`: this node did not reach the index in time. `lost`, `foreign`: {@link IndexPlace}. */
export type Reached = 'reached' | 'behind' | 'lost' | 'foreign';

interface ReachingEngine extends Pick<Engine, 'replication'> {
  readonly replica: Pick<Replica, 'status' | 'watch'>;
  status(): { readonly clusterId: string };
}

/** Returns the cluster and its replication, as this node has applied it. */
export const historyOf = (engine: Pick<ReachingEngine, 'status' | 'replication'>): HistoryOf => ({
  clusterId: engine.status().clusterId,
  replication: engine.replication,
});

/** Waits until this node has applied a state that contains the index, at most `withinMs`. */
export async function reachedState(wanted: ServiceIndex, withinMs: number, engine: ReachingEngine): Promise<Reached> {
  const endMs = performance.now() + withinMs;
  let place: IndexPlace = placeOf(wanted, historyOf(engine));
  // A promotion that this node has not applied yet begins the epoch.
  for (; place.kind === 'ahead' && performance.now() < endMs; place = placeOf(wanted, historyOf(engine))) await pause(pollMs);
  if (place.kind === 'contained') return 'reached';
  if (place.kind === 'ahead') return 'behind';
  if (place.kind !== 'log') return place.kind;
  const leftMs = Math.max(0, endMs - performance.now());
  return (await reachedIndex(engine.replica, place.index, leftMs)) ? 'reached' : 'behind';
}

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
