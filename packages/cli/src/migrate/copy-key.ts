import { wrapForImport } from '../local/import-material.ts';
import type { End } from './end.ts';
import { exportKindOf, materialOf, placeholderOf, publicPemOf, UnreadableExport } from './exported-material.ts';
import { peerBackup } from './peer-format.ts';
import { firstVisible, type SeenKey } from './source-key.ts';

/** Two ends of a move, and the path of the mount at both. */
export interface Route {
  readonly source: End;
  readonly target: End;
  readonly mount: string;
}

/** The two settings of a key that a backup requires. */
export type Protection = Pick<SeenKey, 'exportable' | 'allowPlaintextBackup'>;

/**
 * Copies a key by its backup.
 * @param before - the protection that the key had before this program changed it; a backup of Vault or OpenBao gets it back
 * @param overwrite - replace the key at the target, an older state of the same key
 * @throws RefusedError, UnansweredError, UnreadableExport
 */
export async function copyByBackup(
  route: Route,
  key: SeenKey,
  { before, overwrite }: { readonly before: Protection; readonly overwrite: boolean },
): Promise<void> {
  const { source, target, mount } = route;
  const from = source.client.transit(mount);
  const backup =
    source.own && !target.own
      ? await backupForPeer(route, key, before)
      : withProtection((await from.backupKey(key.name)).data.backup, before);
  await target.client.transit(mount).restoreKey(backup, { name: key.name, force: overwrite });
}

/** Returns a backup in the format of Vault and OpenBao, made from exports of transitd. */
async function backupForPeer({ source, mount }: Route, key: SeenKey, before: Protection): Promise<string> {
  const from = source.client.transit(mount);
  const material = (await from.exportKey(key.name, exportKindOf(key))).data.keys;
  const hmacSecrets = (await from.exportKey(key.name, 'hmac-key')).data.keys;
  return peerBackup(key, { material, hmacSecrets, before });
}

/**
 * Sets the protection in a backup of Vault or OpenBao. Its text is edited, because it has integers that a JSON parser would round. A
 * string in it cannot match: its quotes would be escaped. A backup of transitd has a checksum and stays unchanged.
 * @param backup - base64
 */
export function withProtection(backup: string, { exportable, allowPlaintextBackup }: Protection): string {
  const text = Buffer.from(backup, 'base64').toString('latin1');
  if (!text.startsWith('{')) return backup;
  const changed = text
    .replace(/"exportable":(?:true|false)/, `"exportable":${exportable}`)
    .replace(/"allow_plaintext_backup":(?:true|false)/, `"allow_plaintext_backup":${allowPlaintextBackup}`);
  return Buffer.from(changed, 'latin1').toString('base64');
}

/**
 * Copies a key by export and import, then its certificates and settings. Versions that the target already has from an earlier run are not
 * imported again.
 * @param present - how many versions the target has
 * @param created - called when the target has the first version
 * @throws RefusedError, UnansweredError, UnreadableExport
 */
export async function copyByImport(
  { source, target, mount }: Route,
  key: SeenKey,
  { before, present, created }: { readonly before: Protection; readonly present: number; readonly created: () => void },
): Promise<void> {
  const keys = target.client.transit(mount);
  const { keys: exported } = (await source.client.transit(mount).exportKey(key.name, exportKindOf(key))).data;
  const wrappingKey = (await keys.wrappingKey()).data.public_key;
  const wrapped = (material: Buffer): Readonly<Record<string, unknown>> => {
    try {
      return { ciphertext: wrapForImport(material, wrappingKey), hash_function: 'SHA256' };
    } finally {
      material.fill(0);
    }
  };
  for (let version = present + 1; version <= key.latestVersion; version++) {
    const text = exported[String(version)];
    const isHidden = version < firstVisible(key);
    // Random material in place of a version that data was encrypted with would look like a successful move.
    if (text === undefined && !isHidden) throw new UnreadableExport(`the source exported no version ${version} of ${key.name}`);
    const material =
      text === undefined || isHidden
        ? wrapped(placeholderOf(key))
        : text === ''
          ? { public_key: publicPemOf(key, key.versions.get(version)?.publicKey ?? '') }
          : wrapped(materialOf(key, text));
    if (version === 1) await keys.importKey(key.name, { ...importSettings(key, before), ...material });
    else await keys.importVersion(key.name, material);
    created();
  }
  await copySettings({ target, mount }, key);
  for (const [version, { certificateChain }] of key.versions)
    if (certificateChain !== '') await keys.setCertificate(key.name, { version, certificate_chain: certificateChain });
}

const importSettings = (key: SeenKey, { exportable, allowPlaintextBackup }: Protection): Readonly<Record<string, unknown>> => ({
  type: key.type,
  exportable,
  allow_plaintext_backup: allowPlaintextBackup,
  allow_rotation: key.allowRotation,
  ...(key.derived && { derived: true }),
  ...(key.autoRotatePeriodS > 0 && key.allowRotation && { auto_rotate_period: key.autoRotatePeriodS }),
});

/** Sets the minimum versions and the right to delete, and trims the versions that the source has trimmed. */
async function copySettings({ target, mount }: Pick<Route, 'target' | 'mount'>, key: SeenKey): Promise<void> {
  const keys = target.client.transit(mount);
  await keys.configureKey(key.name, {
    min_decryption_version: firstVisible(key),
    deletion_allowed: key.deletionAllowed,
    ...(key.minEncryptionVersion > 0 && { min_encryption_version: key.minEncryptionVersion }),
  });
  if (key.minAvailableVersion > 0) await keys.trimKey(key.name, key.minAvailableVersion);
}
