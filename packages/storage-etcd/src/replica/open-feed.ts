import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { FeatureLevel } from '@transitd/storage-fsm';
import { type Etcd, EtcdError } from '../etcd.ts';
import { StateFeed, type StateFeedOptions } from './state-feed.ts';

/** Attempts to open the feed. Few: an etcd that does not run is reported soon. */
const openAttempts = 3;

/**
 * Reads the whole state of a cluster; creates the cluster if it has no keys yet.
 * @param level - feature level of a new cluster
 * @throws EtcdError, CopyFault
 */
export const openFeed = (options: StateFeedOptions, level: FeatureLevel): Promise<StateFeed> =>
  answered(options.retryMs, async () => {
    const { etcd, keys } = options;
    await putIfAbsent(etcd, keys.cluster, randomUUID());
    await putIfAbsent(etcd, keys.level, String(level));
    return StateFeed.open(options);
  });

/** Tries a task again if etcd gives no answer: it may have no leader for a moment. @throws what the last attempt throws */
async function answered<T>(pauseMs: number, task: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await task();
    } catch (error) {
      if (attempt === openAttempts || !(error instanceof EtcdError && error.kind === 'unknown')) throw error;
      await delay(pauseMs);
    }
  }
}

/**
 * Writes a key that is written once. Reads it first: unlike a transaction, a read is repeated at another member of etcd if the first one
 * does not answer.
 */
async function putIfAbsent(etcd: Etcd, key: string, value: string): Promise<void> {
  const { rows } = await etcd.range({ key });
  if (rows.length > 0) return;
  const success = [{ kind: 'put' as const, key, value: Buffer.from(value) }];
  await etcd.txn({ compares: [{ key, modRevision: 0 }], success, failure: [] });
}
