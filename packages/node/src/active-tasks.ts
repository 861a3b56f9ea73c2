import { setImmediate } from 'node:timers/promises';
import { ensureAuditKey } from '@transitd/audit';
import type { Barrier } from '@transitd/barrier';
import { type Logger, reasonOf } from '@transitd/process';
import { sweepRemovedMounts } from './mounts/mount-sweep.ts';
import type { Services } from './services.ts';

/** Roughly how many records one step of a sweep reads or deletes. */
const sweepLimit = 500;
/** Maximum number of records whose dates one round corrects; each is a log entry. */
const correctionLimit = 5000;
/** Maximum number of keys that one round rotates. */
const rotationLimit = 1000;

export interface ActiveTasksParts {
  readonly services: Services;
  readonly barrier: Barrier;
  readonly log: Logger;
  readonly isActive: () => boolean;
}

/**
 * Runs one round of the active node's tasks: rotates the barrier key and keys that are due, and deletes invalid tokens and the records of
 * deleted keys and removed mounts. A task that fails is logged and retried in the next round; the other tasks still run.
 */
export async function runActiveTasks({ services, barrier, log, isActive }: ActiveTasksParts): Promise<void> {
  const attempt = async (name: string, task: () => Promise<unknown>): Promise<void> => {
    try {
      await task();
    } catch (error) {
      log.warn({ task: name, reason: reasonOf(error) }, 'a maintenance task failed; the next round tries again');
    }
  };

  await attempt('delete invalid tokens', async () => {
    const { removed, unreadable } = await sweepTokens(services, isActive);
    if (removed > 0) log.info({ removed }, 'deleted tokens that were no longer valid');
    if (unreadable > 0)
      log.warn({ unreadable }, 'some invalid tokens have a format that this version does not know and were not deleted');
  });
  await attempt('delete the records of removed and expired logins', () => services.logins.sweep(sweepLimit));
  await attempt('rotate the barrier key', async () => {
    const { rotated } = await barrier.maintain();
    if (rotated) log.info('rotated the barrier key');
  });
  await attempt('create the audit key', () => ensureAuditKey(barrier.store));
  await attempt('delete the records of removed mounts', async () => {
    const removed = await sweepMounts(barrier, isActive);
    if (removed > 0) log.info({ removed }, 'deleted records of removed mounts');
  });
  for (const engine of services.mounts.engines.values()) {
    await attempt('use key material that secondary clusters have confirmed', () => engine.useConfirmed());
    await attempt('rotate keys that are due', async () => {
      const { rotated, failed } = await engine.rotateDue(rotationLimit);
      if (rotated > 0) log.info({ rotated }, 'rotated keys that were due');
      if (failed > 0) log.warn({ failed }, 'some keys that are due could not be rotated; the next round tries again');
    });
    await attempt('delete the records of deleted keys', () => engine.sweep(sweepLimit));
    // Generating the key takes seconds, so it is created before the first request for it.
    await attempt('create the wrapping key for imports', () => engine.transfers.wrappingKey());
  }
  // Last, because there may be many, and no other task may wait for them.
  await attempt('correct the dates of tokens that were made while the clocks disagreed', async () => {
    const corrected = await correctDates(services, isActive);
    if (corrected > 0)
      log.info({ corrected }, 'corrected the dates of tokens and secret ids that were made while a clock was ahead');
  });
}

/** Corrects dates in steps, until none is left or the round has done its share. Other work runs between the steps. */
async function correctDates({ disputedDates }: Services, isActive: () => boolean): Promise<number> {
  let [corrected, step] = [0, sweepLimit];
  for (; step >= sweepLimit && corrected < correctionLimit && isActive(); await setImmediate()) {
    step = await disputedDates.correct(sweepLimit);
    corrected += step;
  }
  return corrected;
}

/** Deletes invalid tokens in steps, until a step deletes fewer than its limit. Other work runs between the steps. */
async function sweepTokens({ registry }: Services, isActive: () => boolean): Promise<{ removed: number; unreadable: number }> {
  let [removed, unreadable, stepRemoved] = [0, 0, sweepLimit];
  for (; stepRemoved >= sweepLimit && isActive(); await setImmediate()) {
    const swept = await registry.sweep(sweepLimit);
    stepRemoved = swept.removed;
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
