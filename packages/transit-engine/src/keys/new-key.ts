import { randomBytes } from 'node:crypto';
import type { Transaction } from '@transitd/storage-fsm';
import { TransitError } from '../errors.ts';
import { keyIdBytes } from '../transfers/restore.ts';
import { type VersionMaterial, withFreshVersion } from './fresh-version.ts';
import { checkDerivation, createKey } from './key.ts';
import { type LoadedKey, loadedKey, loadedVersion } from './key-cache.ts';
import type { KeyRecord } from './key-record.ts';
import { type VersionView, versionView } from './key-view.ts';
import { isKeyName, type Paths } from './paths.ts';

/** A key that is not stored yet, ready for use, and what stores it; whoever commits that wipes it. */
export interface NewKey {
  readonly key: LoadedKey;
  readonly firstVersion: VersionView;
  readonly transaction: Transaction;
}

/**
 * @param bound - what its first version keeps, where that is not drawn
 * @throws TransitError `invalid_request` for a name that no key can have, and for a type that does not derive
 */
export async function newKey(
  paths: Paths,
  name: string,
  settings: Omit<KeyRecord, 'id'>,
  nowMs: number,
  bound?: () => Promise<VersionMaterial | undefined>,
): Promise<NewKey> {
  if (!isKeyName(name)) throw new TransitError('invalid_request', 'invalid key name');
  checkDerivation(settings);
  const id = randomBytes(keyIdBytes).toString('hex');
  const key = loadedKey(name, { ...settings, id, latestCreatedMs: nowMs }, 0);
  return withFreshVersion({ record: key.record, nowMs, given: await bound?.() }, (fresh) => {
    const version = key.record.latestVersion;
    key.versions.set(version, loadedVersion(key, fresh));
    const firstVersion = versionView(key.record, { ...fresh, version });
    return { key, firstVersion, transaction: createKey(paths, name, key.record, fresh) };
  });
}
