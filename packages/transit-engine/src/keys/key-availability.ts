import { TransitError } from '../values/errors.ts';
import { changed, checkDeletionAllowed, type KeyChange, type StoredKey } from './key.ts';
import { type KeyRecord, usableVersion, withDisabled } from './key-record.ts';
import type { Paths } from './paths.ts';

/** Most versions of a key that are disabled at a time, and characters of a reason: every use of the key loads them with its settings. */
export const [disabledVersionsMax, reasonCharsMax] = [100, 128];

/** Refuses every use of the key until {@link restoreDeleted}. Nothing else of it changes. */
export function softDelete(paths: Paths, key: StoredKey): KeyChange {
  const { record } = key;
  if (record.softDeleted) return { record, warnings: ['key was already marked as soft deleted'] };
  return changed(paths, key, { ...record, softDeleted: true }, pausedRotation(record));
}

const pausedRotation = ({ autoRotatePeriodS }: KeyRecord): string[] =>
  autoRotatePeriodS > 0 ? ['the key is not rotated automatically while it is soft-deleted'] : [];

const dayS = 86_400;
/** Range of the time until a scheduled deletion, in seconds. */
export const [deletionAfterSMin, deletionAfterSMax] = [7 * dayS, 90 * dayS];

/**
 * Soft-deletes the key, and lets it be deleted permanently when the time has passed. Replaces an earlier schedule.
 * @param afterS - seconds
 * @param utcMs - by the later clock, so that the key is not deleted too early
 * @throws TransitError `invalid_request`, `deletion_not_allowed`
 */
export function scheduleDeletion(paths: Paths, key: StoredKey, afterS: number, utcMs: number): KeyChange {
  const { record } = key;
  if (afterS < deletionAfterSMin || afterS > deletionAfterSMax)
    throw new TransitError('invalid_request', 'after must be from 7 to 90 days');
  checkDeletionAllowed(key);
  const { scheduledDeletionMs: before } = record;
  const replaced = before === undefined ? [] : [`replaces the deletion that was scheduled for ${new Date(before).toISOString()}`];
  const scheduled = { ...record, softDeleted: true, scheduledDeletionMs: utcMs + afterS * 1000 } as const;
  return changed(paths, key, scheduled, [...replaced, ...(record.softDeleted ? [] : pausedRotation(record))]);
}

/** Ends the schedule of a key whose deletion is due but not allowed: it stays soft-deleted. */
export function endSchedule(paths: Paths, key: StoredKey): KeyChange {
  const { scheduledDeletionMs: _, ...record } = key.record;
  return changed(paths, key, record, []);
}

/**
 * Lets a soft-deleted key be used again, and ends its schedule. Automatic rotations and trims that were due in the meantime follow.
 */
export function restoreDeleted(paths: Paths, key: StoredKey): KeyChange {
  const { softDeleted, scheduledDeletionMs: _, ...record } = key.record;
  return softDeleted ? changed(paths, key, record, []) : { record: key.record, warnings: ['key was already restored'] };
}

/** A request to disable a version. */
export interface DisableVersionRequest {
  readonly version: number;
  /** Shown to readers of the key: printable, at most {@link reasonCharsMax} characters. */
  readonly reason?: string | undefined;
}

/**
 * Refuses every use of one version, except its part in backups.
 * @throws TransitError `invalid_request`, also for the latest version; `key_version_unavailable`
 */
export function disableVersion(
  paths: Paths,
  key: StoredKey,
  { version, reason = '' }: DisableVersionRequest,
  timeMs: number,
): KeyChange {
  const { record } = key;
  const { disabledVersions = {} } = record;
  checkAvailable(record, version);
  if (version >= usableVersion(record))
    throw new TransitError('invalid_request', `version ${version} is the latest and cannot be disabled: rotate the key first`);
  if (!isReason(reason)) {
    throw new TransitError('invalid_request', `reason must be printable and have at most ${reasonCharsMax} characters`);
  }
  if (disabledVersions[version] !== undefined) return { record, warnings: [`version ${version} was already disabled`] };
  if (Object.keys(disabledVersions).length >= disabledVersionsMax) throw new TransitError('invalid_request', tooManyDisabled);
  return changed(paths, key, withDisabled(record, { ...disabledVersions, [version]: { reason, timeMs } }), []);
}

/** Lets a disabled version be used again. @throws TransitError `key_version_unavailable` */
export function enableVersion(paths: Paths, key: StoredKey, version: number): KeyChange {
  const { record } = key;
  checkAvailable(record, version);
  const { [version]: disabled, ...others } = record.disabledVersions ?? {};
  if (disabled === undefined) return { record, warnings: [`version ${version} was already enabled`] };
  return changed(paths, key, withDisabled(record, others), []);
}

/** Without control characters and lone surrogates, which would take up to six bytes each. */
export const isReason = (reason: string): boolean => reason.length <= reasonCharsMax && /^\P{C}*$/u.test(reason);

function checkAvailable({ minAvailableVersion, latestVersion }: KeyRecord, version: number): void {
  if (version < Math.max(minAvailableVersion, 1) || version > latestVersion)
    throw new TransitError('key_version_unavailable', 'no such key version');
}

const tooManyDisabled = `at most ${disabledVersionsMax} versions of a key can be disabled: raise min_decryption_version, or trim`;
