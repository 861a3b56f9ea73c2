import { setImmediate } from 'node:timers/promises';
import { ensureAuditKey } from '@transitd/audit';
import type { Barrier } from '@transitd/barrier';
import type { Logger } from '@transitd/process';
import { sweepRemovedMounts } from './mounts/mount-sweep.ts';
import type { Services } from './services.ts';

/** Records that one piece of clearing deletes or looks at, about. */
const sweepLimit = 500;
/** Keys that one round rotates at most. */
const rotationLimit = 1000;

export interface UpkeepParts {
  readonly services: Services;
  readonly barrier: Barrier;
  readonly log: Logger;
  readonly isActive: () => boolean;
}

/**
 * One round of what the active node does from time to time: the barrier's rotation, keys that are due, and clearing what tokens,
 * deleted keys and removed mounts left behind. What fails is logged and left for the next round; the other tasks do not depend on it.
 */
export async function keepUp({ services, barrier, log, isActive }: UpkeepParts): Promise<void> {
  const attempt = async (task: () => Promise<unknown>): Promise<void> => {
    try {
      await task();
    } catch (error) {
      log.warn({ reason: error instanceof Error ? error.message : String(error) }, 'upkeep was left for the next round');
    }
  };

  await attempt(async () => {
    const { removed, unreadable } = await sweepTokens(services, isActive);
    if (removed > 0) log.info({ removed }, 'tokens were deleted that were good no more');
    if (unreadable > 0) log.warn({ unreadable }, 'tokens that are good no more are of a format that this version does not know');
  });
  await attempt(() => services.logins.sweep(sweepLimit));
  await attempt(async () => {
    const { rotated, rewrapped } = await barrier.maintain();
    if (rotated) log.info("the barrier's key was rotated");
    if (rewrapped) log.info('the root key was wrapped anew by the present seal key');
  });
  await attempt(() => ensureAuditKey(barrier.store));
  await attempt(async () => {
    const removed = await sweepMounts(barrier, isActive);
    if (removed > 0) log.info({ removed }, 'records of removed mounts were deleted');
  });
  for (const engine of services.mounts.engines.values()) {
    await attempt(async () => {
      const { rotated, failed } = await engine.rotateDue(rotationLimit);
      if (rotated > 0) log.info({ rotated }, 'keys were rotated that were due');
      if (failed > 0) log.warn({ failed }, 'keys that are due could not be rotated');
    });
    await attempt(() => engine.sweep(sweepLimit));
    await attempt(() => engine.transfers.wrappingKey()); // making it takes seconds: it is there before anyone asks
  }
}

/** Piece by piece while there is more than one of them, and other work in between. */
async function sweepTokens({ registry }: Services, isActive: () => boolean): Promise<{ removed: number; unreadable: number }> {
  let [removed, unreadable, piece] = [0, 0, sweepLimit];
  for (; piece >= sweepLimit && isActive(); await setImmediate()) {
    const swept = await registry.sweep(sweepLimit);
    piece = swept.removed;
    removed += swept.removed;
    unreadable += swept.unreadable;
  }
  return { removed, unreadable };
}

async function sweepMounts({ store }: Barrier, isActive: () => boolean): Promise<number> {
  let removed = 0;
  for (let finished = false; !finished && isActive(); await setImmediate()) {
    const swept = await sweepRemovedMounts(store, sweepLimit);
    removed += swept.removed;
    ({ finished } = swept);
  }
  return removed;
}
