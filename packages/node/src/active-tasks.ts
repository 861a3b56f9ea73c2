import { setImmediate } from 'node:timers/promises';
import { ensureAuditKey } from '@transitd/audit';
import type { NodeRole } from '@transitd/cluster';
import { type Logger, type RecordClock, reasonOf } from '@transitd/process';
import { acceptsWrites } from '@transitd/storage-fsm';
import type { DueChange, DueRound } from '@transitd/transit-engine';
import { destruction } from './destruction.ts';
import { type Journal, type OwnOperation, recordedChange } from './due-changes.ts';
import { type Mount, sweepRemovedMounts } from './mounts/mounts.ts';
import type { Member } from './phases.ts';

/** Roughly how many records one step of a sweep reads or deletes. */
const sweepLimit = 500;
/** Maximum number of records that one task of a round deletes or corrects; each may be a log entry. */
const changesLimit = 5000;
/** Maximum number of steps of a sweep that reads what it keeps. */
const stepsMax = 100;
/** Maximum number of keys of a mount that one round rotates, deletes, or deletes old versions of. */
const keyLimit = 1000;

/** Returns a function that runs a task. One that fails is logged, and the tasks after it still run. */
const attempts =
  (log: Logger) =>
  async (name: string, task: () => Promise<unknown>, mount?: string): Promise<void> => {
    try {
      await task();
    } catch (error) {
      log.warn({ task: name, mount, reason: reasonOf(error) }, 'a maintenance task failed; the next round tries again');
    }
  };

/**
 * Runs one round of the active node's tasks, and none on any other node: rotates the barrier key and keys that are due, and deletes invalid
 * tokens, keys and versions that are due, and the records of deleted keys and removed mounts.
 */
export async function runActiveTasks(
  { barrier, role, engine: records, services: loader, snapshots, featureLevel }: Member,
  { log, audit, clock }: Journal & { readonly clock: RecordClock },
): Promise<void> {
  if (!role.isActive) return;
  const attempt = attempts(log);
  await attempt('delete the leftovers of a restore', () => snapshots.clearLeftovers());
  await attempt('raise the feature level', () => featureLevel.maintain());
  // The node may have been sealed meanwhile, or have lost its role.
  const { services } = loader;
  if (!role.isActive || services === undefined) return;
  // On a secondary, only the seal is its own: everything else that the tasks of an active node change comes from the primary.
  if (!acceptsWrites(records.replication))
    return attempt('wrap the root key under the present seal key', () => barrier.maintain('seal'));

  const warnOfFailed = (mount: Mount, failed: DueRound['failed'], message: string): void => {
    const [first] = failed;
    if (first === undefined) return;
    log.warn({ mount: mount.path, key: first.name, reason: reasonOf(first.error), failed: failed.length }, message);
  };

  await attempt('delete invalid tokens', async () => {
    let [removed, unreadable] = [0, 0];
    await inSteps(role, async () => {
      const swept = await services.registry.sweep(sweepLimit);
      removed += swept.removed;
      unreadable += swept.unreadable;
      return swept.removed < sweepLimit;
    });
    if (removed > 0) log.info({ removed }, 'deleted tokens that were no longer valid');
    if (unreadable > 0)
      log.warn({ unreadable }, 'some invalid tokens have a format that this version does not know and were not deleted');
  });
  await attempt('rotate the barrier key', async () => {
    const { rotated } = await barrier.maintain();
    if (rotated) log.info('rotated the barrier key');
  });
  await attempt('create the audit key', () => ensureAuditKey(barrier.store));
  await attempt('delete the records of removed mounts', async () => {
    let removed = 0;
    await inSteps(role, async () => {
      const swept = await sweepRemovedMounts(barrier.store, sweepLimit);
      removed += swept.removed;
      return swept.finished;
    });
    if (removed > 0) log.info({ removed }, 'deleted records of removed mounts');
  });
  let mayDestroy = (): boolean => false;
  await attempt('find out whether something may be destroyed', async () => {
    mayDestroy = await destruction(barrier.store, records, clock);
  });
  for (const mount of services.mounts.list) {
    const engine = services.mounts.engines.get(mount.path);
    if (engine === undefined || !role.isActive) continue; // the role may have been lost meanwhile
    const attemptHere = (name: string, task: () => Promise<unknown>) => attempt(name, task, mount.path);
    await attemptHere('use key material that secondary clusters have confirmed', () => engine.useConfirmed());
    const recorded = (operation: OwnOperation): DueChange => recordedChange(operation, mount, services, { log, audit });
    await attemptHere('rotate keys that are due', async () => {
      const { failed } = await engine.rotateDue(keyLimit, recorded('rotate'));
      warnOfFailed(
        mount,
        failed,
        'could not rotate keys that are due, such as this one; they are tried again, at least each hour',
      );
    });
    if (mayDestroy()) {
      await attemptHere('delete versions of keys that are due', async () => {
        const { failed } = await engine.trimDue(keyLimit, mayDestroy, recorded('trim'));
        warnOfFailed(
          mount,
          failed,
          'could not delete versions of keys that are due, such as this one; they are tried again, at least each hour',
        );
      });
      await attemptHere('delete keys that are due', async () => {
        const { failed } = await engine.deleteDue(keyLimit, mayDestroy, recorded('delete'));
        warnOfFailed(mount, failed, 'could not delete keys whose scheduled deletion is due, such as this one');
      });
    }
  }
  // Last, because there may be many, and no other task may wait for them.
  await attempt('delete the records of removed and expired logins', () =>
    deleteAll(role, () => services.logins.sweep(sweepLimit)),
  );
  for (const [mount, engine] of services.mounts.engines)
    if (role.isActive)
      await attempt(
        'delete the records of deleted keys',
        () => deleteAll(role, async () => (await engine.sweep(sweepLimit)).removed),
        mount,
      );
  await attempt('correct the dates of tokens that were made while the clocks disagreed', async () => {
    let corrected = 0;
    await inSteps(role, async () => {
      const step = await services.disputedDates.correct(sweepLimit);
      corrected += step;
      return step < sweepLimit || corrected >= changesLimit;
    });
    if (corrected > 0)
      log.info({ corrected }, 'corrected the dates of tokens and secret ids that were made while a clock was ahead');
  });
}

/** Creates the wrapping keys of mounts that have none, as the active node. */
export async function createWrappingKeys(
  { role, engine, services: loader }: Member,
  { log }: Pick<Journal, 'log'>,
): Promise<void> {
  const attempt = attempts(log);
  const { services } = loader;
  for (const [mount, { transfers }] of services?.mounts.engines ?? []) {
    // Asked for each mount: while a key was generated, the node may have been sealed, or have lost its role.
    if (!role.isActive || loader.services !== services || !acceptsWrites(engine.replication)) return;
    await attempt('create the wrapping key of a mount for imports', () => transfers.wrappingKey(), mount);
  }
}

/**
 * Runs the steps of a sweep that also reads what it keeps, until one deletes nothing. One step in a round would delete more slowly than
 * callers can create what it has to delete.
 */
async function deleteAll(role: NodeRole, step: () => Promise<number>): Promise<void> {
  let [all, steps] = [0, 0];
  await inSteps(role, async () => {
    const deleted = await step();
    all += deleted;
    steps += 1;
    return deleted === 0 || all >= changesLimit || steps === stepsMax;
  });
}

/** Runs the steps of a task, with other work between them, until one returns that it was the last, or this node is no longer active. */
async function inSteps(role: NodeRole, step: () => Promise<boolean>): Promise<void> {
  while (role.isActive && !(await step())) await setImmediate();
}
