import type { Protection } from './copy-key.ts';
import { firstVisible, type SeenKey } from './source-key.ts';

/** Settings that must be equal at both ends, with the names of the API. */
const settings = {
  type: ({ type }) => type,
  derived: ({ derived }) => derived,
  convergent_encryption: ({ convergent }) => convergent,
  deletion_allowed: ({ deletionAllowed }) => deletionAllowed,
  auto_rotate_period: ({ autoRotatePeriodS }) => autoRotatePeriodS,
  latest_version: ({ latestVersion }) => latestVersion,
  min_available_version: ({ minAvailableVersion }) => minAvailableVersion,
  min_decryption_version: firstVisible,
  min_encryption_version: ({ minEncryptionVersion }) => minEncryptionVersion,
  disabled_versions: ({ disabledVersions }) => disabledVersions.join(', ') || 'none',
} as const satisfies Readonly<Record<string, (key: SeenKey) => unknown>>;

/**
 * Returns what differs between a key at the source and at the target, one sentence each.
 * @param times - whether the creation times were moved
 */
export function differences(source: SeenKey, target: SeenKey, { times }: { readonly times: boolean }): readonly string[] {
  const found = Object.entries(settings)
    .map(([name, of]) => [name, of(source), of(target)] as const)
    .filter(([, theirs, ours]) => theirs !== ours)
    .map(([name, theirs, ours]) => `${name} is ${theirs} at the source and ${ours} at the target`);
  for (const [version, theirs] of source.versions) {
    const ours = target.versions.get(version);
    if (ours === undefined) continue; // another latest_version or minimum, which is reported above
    if (theirs.publicKey !== ours.publicKey) found.push(`version ${version} has another public key`);
    if (blocksOf(theirs.certificateChain) !== blocksOf(ours.certificateChain))
      found.push(`version ${version} has another certificate chain`);
    if (times && secondsOf(theirs.created) !== secondsOf(ours.created))
      found.push(`version ${version} has another creation time`);
  }
  return found;
}

/** Returns the settings by which a key is less protected at the target than it was at the source, one sentence each. */
export const weakenedProtection = (before: Protection, ours: Protection): readonly string[] => [
  ...(ours.exportable && !before.exportable ? ['exportable is true at the target, but was false at the source'] : []),
  ...(ours.allowPlaintextBackup && !before.allowPlaintextBackup
    ? ['allow_plaintext_backup is true at the target, but was false at the source']
    : []),
];

/** Returns the content of PEM blocks without white space. */
const blocksOf = (pem: string): string => pem.replace(/\s+/g, '');

/** Returns a creation time in whole seconds: services store different fractions of a second. */
export const secondsOf = (created: string): number =>
  Math.floor(/^\d+$/.test(created) ? Number(created) : Date.parse(created) / 1000);
