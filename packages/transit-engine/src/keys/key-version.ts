import { TransitError } from '../values/errors.ts';
import type { LoadedKey } from './key-cache.ts';
import { checkEnabled, latestUsable } from './key-record.ts';
import { checkUnspent } from './operation-limit.ts';

/** Operations that make a ciphertext, signature or MAC. The caller may choose the key version. */
export type VersionPurpose = 'encryption' | 'signing' | 'HMAC' | 'CMAC';

/**
 * Returns the version to use: the latest, or the requested one if it may still be used to encrypt, sign or make MACs.
 * @param requested - 0 selects the latest
 * @throws TransitError `key_version_unavailable`, `unconfirmed`
 */
export function versionFor(purpose: VersionPurpose, { record }: LoadedKey, requested = 0): number {
  const { minEncryptionVersion, minDecryptionVersion } = record;
  const latestVersion = latestUsable(record);
  if (record.spentVersions !== undefined) checkUnspent(record, requested === 0 ? latestVersion : requested);
  if (requested === 0) return latestVersion;
  if (requested < 0) throw unavailable(refusals[purpose].negative);
  if (requested > latestVersion) throw unavailable(refusals[purpose].tooNew(latestVersion));
  if (requested < minEncryptionVersion) throw unavailable(refusals[purpose].tooOld);
  if (requested < minDecryptionVersion) throw unavailable('no such key version');
  checkEnabled(record, requested);
  return requested;
}

interface Refusals {
  readonly negative: string;
  readonly tooNew: (latestVersion: number) => string;
  readonly tooOld: string;
}

const requestedVersion = (purpose: string): Refusals => ({
  negative: `requested version for ${purpose} is negative`,
  tooNew: () => `requested version for ${purpose} is higher than the latest key version`,
  tooOld: `requested version for ${purpose} is less than the minimum encryption key version`,
});

const macVersion = (kind: string): Refusals => ({
  negative: 'key version does not exist (cannot be negative)',
  tooNew: (latestVersion) => `key version does not exist; latest key version is ${latestVersion}`,
  tooOld: `cannot generate ${kind}: version is too old (disallowed by policy)`,
});

/** The texts are part of the API, which words them differently for MACs. */
const refusals: Readonly<Record<VersionPurpose, Refusals>> = {
  encryption: requestedVersion('encryption'),
  signing: requestedVersion('signing'),
  HMAC: macVersion('HMAC'),
  CMAC: macVersion('CMAC'),
};

const unavailable = (message: string): TransitError => new TransitError('key_version_unavailable', message);
