import { TransitError } from '../values/errors.ts';
import { type Aging, type AgingSettings, type KeyRecord, type Retired, usableVersion, withDisabled } from './key-record.ts';
import type { KeyType } from './key-type.ts';

// The versions of a key age by themselves: its minimums follow the newest usable version, and what has been below them for long enough is
// deleted. Minimums only rise here, and never above the newest usable version, so that at every moment some version may encrypt.

/** Largest number of versions to keep. */
export const keptVersionsMax = 1_000_000;
/** Shortest time until versions are deleted, in seconds: one hour. */
const trimAfterMinS = 3600;
/**
 * Versions that were retired within this part of `trim_after` share the time of the last of them, so nothing is deleted too early, and a
 * key's record has at most some 35 times.
 */
const sharedPart = 1 / 16;

const off: Aging = { keepEncryptionVersions: 0, keepDecryptionVersions: 0, trimAfterS: 0, retired: [] };

/** Returns the settings of a key, with 0 for those that are off. */
export const agingSettings = ({ aging = off }: Pick<KeyRecord, 'aging'>): AgingSettings => {
  const { keepEncryptionVersions, keepDecryptionVersions, trimAfterS } = aging;
  return { keepEncryptionVersions, keepDecryptionVersions, trimAfterS };
};

/** Returns how a key ages with these settings, before {@link aged} has applied them; undefined if all of them are off. */
export function agingOf({ aging = off }: Pick<KeyRecord, 'aging'>, settings: AgingSettings): Aging | undefined {
  const { keepEncryptionVersions, keepDecryptionVersions, trimAfterS } = settings;
  if (keepEncryptionVersions === 0 && keepDecryptionVersions === 0 && trimAfterS === 0) return undefined;
  return { keepEncryptionVersions, keepDecryptionVersions, trimAfterS, retired: trimAfterS === 0 ? [] : aging.retired };
}

/** @throws TransitError `invalid_request` for settings out of their ranges, against each other, or against the key's type */
export function checkAging(
  { managed }: KeyType,
  { keepEncryptionVersions, keepDecryptionVersions, trimAfterS }: AgingSettings,
): void {
  checkKept('keep_encryption_versions', keepEncryptionVersions);
  checkKept('keep_decryption_versions', keepDecryptionVersions);
  if (keepDecryptionVersions > 0 && keepEncryptionVersions > keepDecryptionVersions)
    throw refusal(
      `keep_encryption_versions of ${keepEncryptionVersions} must not exceed keep_decryption_versions of ${keepDecryptionVersions}`,
    );
  if (!Number.isSafeInteger(trimAfterS) || (trimAfterS !== 0 && trimAfterS < trimAfterMinS))
    throw refusal('trim_after must be 0 to disable or at least an hour');
  if (managed && trimAfterS !== 0)
    throw refusal('trim_after cannot be used with managed keys: their key material is in another system');
}

function checkKept(name: string, versions: number): void {
  if (!Number.isInteger(versions) || versions < 0 || versions > keptVersionsMax)
    throw refusal(`${name} must be from 0, which disables it, to ${keptVersionsMax}`);
}

/** The minimums that a request sets by hand. */
interface RequestedMinimums {
  readonly minDecryptionVersion?: number | undefined;
  readonly minEncryptionVersion?: number | undefined;
}

/** Refuses minimums that the settings of the key contradict. @throws TransitError `invalid_request` */
export function checkRequestedMinimums(
  record: KeyRecord,
  { minDecryptionVersion, minEncryptionVersion }: RequestedMinimums,
): void {
  const { keepEncryptionVersions, keepDecryptionVersions, trimAfterS } = agingSettings(record);
  const usable = usableVersion(record);
  checkRequested('min_decryption_version', minDecryptionVersion, {
    setting: 'keep_decryption_versions',
    kept: keepDecryptionVersions,
    usable,
  });
  checkRequested('min_encryption_version', minEncryptionVersion, {
    setting: 'keep_encryption_versions',
    kept: keepEncryptionVersions,
    usable,
  });
  if (trimAfterS > 0 && minEncryptionVersion === 0)
    throw refusal('min_encryption_version cannot be 0 while trim_after is set: versions can only be deleted below it');
}

function checkRequested(
  name: string,
  requested: number | undefined,
  { setting, kept, usable }: { readonly setting: string; readonly kept: number; readonly usable: number },
): void {
  const oldest = oldestKept(usable, kept);
  if (requested !== undefined && requested < oldest)
    throw refusal(`${name} of ${requested} is below version ${oldest}, the oldest that ${setting} of ${kept} keeps`);
}

/** Returns the oldest of the versions to keep; 0 if their number is not limited. */
const oldestKept = (usable: number, kept: number): number => (kept === 0 ? 0 : Math.max(usable - kept + 1, 1));

/**
 * Returns the key with the minimums that its settings require. Part of every change that sets them, and of every change that makes a
 * version usable: the minimum moves in the same transaction.
 * @param utcMs - by the later clock, so that nothing is deleted too early
 */
export function aged(record: KeyRecord, utcMs: number): KeyRecord {
  const { aging } = record;
  if (aging === undefined) return record;
  const { keepEncryptionVersions, keepDecryptionVersions, trimAfterS } = aging;
  const usable = usableVersion(record);
  const minDecryptionVersion = Math.max(record.minDecryptionVersion, oldestKept(usable, keepDecryptionVersions));
  const minEncryptionVersion = Math.max(record.minEncryptionVersion, oldestKept(usable, keepEncryptionVersions));
  const isSet = minEncryptionVersion > 0;
  const next = {
    ...record,
    minDecryptionVersion,
    // 0 means the newest version only, below which a trim would have no bound.
    minEncryptionVersion: isSet || trimAfterS > 0 ? Math.max(isSet ? minEncryptionVersion : usable, minDecryptionVersion) : 0,
  };
  return { ...next, aging: { ...aging, retired: trimAfterS === 0 ? [] : retiredIn(next, aging, utcMs) } };
}

type Minimums = Pick<KeyRecord, 'minDecryptionVersion' | 'minAvailableVersion'>;

/** Returns since when the versions below the minimum are below it. Versions that a lower minimum has made usable again are not. */
function retiredIn(
  { minDecryptionVersion, minAvailableVersion }: Minimums,
  { retired: before, trimAfterS }: Aging,
  utcMs: number,
): readonly Retired[] {
  const retired: Retired[] = [];
  const end = (): number => retired.at(-1)?.below ?? Math.max(minAvailableVersion, 1);
  for (const { below, sinceMs } of before) {
    const bounded = Math.min(below, minDecryptionVersion);
    if (bounded > end()) retired.push({ below: bounded, sinceMs });
  }
  if (minDecryptionVersion > end()) {
    const sinceMs = Math.max(utcMs, retired.at(-1)?.sinceMs ?? 0);
    const shared = retired.at(-2);
    if (shared !== undefined && sinceMs - shared.sinceMs <= trimAfterS * 1000 * sharedPart) retired.pop();
    retired.push({ below: minDecryptionVersion, sinceMs });
  }
  const due = retired.findLastIndex(({ sinceMs }) => sinceMs + trimAfterS * 1000 <= utcMs);
  return retired.slice(Math.max(due, 0)); // those that are due are deleted together
}

/**
 * Returns when the next versions are deleted, in Unix milliseconds, and the oldest that is left then; undefined if none will be, as on a
 * soft-deleted key.
 */
export function nextTrim({
  aging = off,
  softDeleted,
}: Pick<KeyRecord, 'aging' | 'softDeleted'>): { readonly timeMs: number; readonly minAvailableVersion: number } | undefined {
  const [first] = softDeleted ? [] : aging.retired;
  return first && { timeMs: trimTimeMs(aging, first), minAvailableVersion: first.below };
}

/** Returns when the next versions are deleted, in Unix milliseconds. */
export const trimDueMs = (record: KeyRecord): number | undefined => nextTrim(record)?.timeMs;

const trimTimeMs = ({ trimAfterS }: Aging, { sinceMs }: Retired): number =>
  Math.min(sinceMs + trimAfterS * 1000, Number.MAX_SAFE_INTEGER);

/** Returns the key after the deletion of its versions below `minAvailableVersion`. */
export function withoutTrimmed(record: KeyRecord, minAvailableVersion: number): KeyRecord {
  const { aging, disabledVersions = {} } = record;
  const disabled = Object.entries(disabledVersions).filter(([version]) => Number(version) >= minAvailableVersion);
  const trimmed = withDisabled({ ...record, minAvailableVersion }, Object.fromEntries(disabled));
  if (aging === undefined) return trimmed;
  const retired = aging.retired.filter(({ below }) => below > minAvailableVersion);
  return { ...trimmed, aging: { ...aging, retired } };
}

/** Returns whether a change of the settings shortens `trim_after`, or turns it on. */
export const trimsSooner = (before: KeyRecord, after: KeyRecord): boolean =>
  isLess(agingSettings(after).trimAfterS, agingSettings(before).trimAfterS);

/** Returns whether a change of the settings lets `trim_after` delete versions that would stay without it, or earlier. */
export function deletesEarlier(before: KeyRecord, after: KeyRecord): boolean {
  const [was, is] = [agingSettings(before), agingSettings(after)];
  if (is.trimAfterS === 0) return false;
  return (
    trimsSooner(before, after) ||
    after.minDecryptionVersion > before.minDecryptionVersion ||
    isLess(is.keepDecryptionVersions, was.keepDecryptionVersions) ||
    (is.keepDecryptionVersions > 0 && isLess(after.autoRotatePeriodS, before.autoRotatePeriodS))
  );
}

/** Compares settings of which 0 means never, or all. */
const isLess = (one: number, other: number): boolean => one !== 0 && (other === 0 || one < other);

/** Returns the oldest version that is left when all versions are deleted whose time has come; undefined if none are. */
export const trimmedAt = ({ aging = off }: Pick<KeyRecord, 'aging'>, dueMs: number): number | undefined =>
  aging.retired.findLast((each) => trimTimeMs(aging, each) <= dueMs)?.below;

/** Returns the minimums that the key will have when its next version may be used; undefined if they do not move by themselves. */
export function afterNextVersion(
  record: KeyRecord,
): Pick<KeyRecord, 'minDecryptionVersion' | 'minEncryptionVersion'> | undefined {
  if (record.aging === undefined) return undefined;
  const { confirmedVersion: _, ...confirmed } = record;
  const { minDecryptionVersion, minEncryptionVersion } = aged({ ...confirmed, latestVersion: usableVersion(record) + 1 }, 0);
  return { minDecryptionVersion, minEncryptionVersion };
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
