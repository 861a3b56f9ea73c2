import { createPrivateKey, createPublicKey } from 'node:crypto';
import { ed25519Pkcs8, placeholderOf, UnreadableExport } from './exported-material.ts';
import { disabledObstacle, firstVisible, type SeenKey } from './source-key.ts';

/** The numbers of the types with derivation, the same in Vault and in OpenBao. */
const typeNumbers: Readonly<Record<string, number>> = {
  'aes256-gcm96': 0,
  ed25519: 2,
  'chacha20-poly1305': 5,
  'aes128-gcm96': 8,
};
const kdfNumbers: Readonly<Record<string, number>> = { 'hmac-sha256-counter': 0, hkdf_sha256: 1 };
/** Says that each version has its own convergent version; the one of all present versions is 3. */
const perVersion = -1;
const presentConvergentVersion = 3;
const hmacSecretBytes = 32;

/** Exported material of a key by version, in base64. */
export type ExportedVersions = Readonly<Record<string, string>>;

/** Returns why a key of transitd cannot be written in the backup format of Vault and OpenBao; undefined if it can. */
export function peerFormatObstacle(key: SeenKey): string | undefined {
  if (!key.derived || typeNumbers[key.type] === undefined) return `keys of the type ${key.type} go by export and import`;
  if (key.disabledVersions.length > 0) return disabledObstacle;
  if (kdfNumbers[key.kdf] === undefined) return 'its key derivation is unknown to the target';
  // Vault sets another derivation when it loads such a key.
  if (key.imported && key.kdf === 'hmac-sha256-counter') return 'Vault changes the older key derivation of an imported key';
  if (key.convergent && key.convergentVersion !== perVersion) return 'its convergent encryption has an older form';
  return undefined;
}

/**
 * Returns the backup that Vault and OpenBao would make of a derived key. Unlike an import, it keeps the derivation and convergence of the
 * key, its HMAC secrets and times. Versions that the source hides get random material in the archive, where only their number counts.
 * @param before - the protection that the key gets at the target
 * @returns base64 of JSON
 * @throws UnreadableExport
 */
export function peerBackup(
  key: SeenKey,
  {
    material,
    hmacSecrets,
    before,
  }: {
    readonly material: ExportedVersions;
    readonly hmacSecrets: ExportedVersions;
    readonly before: Pick<SeenKey, 'exportable' | 'allowPlaintextBackup'>;
  },
): string {
  const first = firstVisible(key);
  const archiveBegins = key.minAvailableVersion;
  const entryOf = (version: number): object => {
    if (version === 0) return {};
    if (version < first)
      return entry(key, { bytes: rawOf(key, placeholderOf(key)), hmacSecret: Buffer.alloc(hmacSecretBytes), created: '' });
    const [exported, hmacSecret] = [material[String(version)], hmacSecrets[String(version)]];
    if (exported === undefined || hmacSecret === undefined || exported === '' || hmacSecret === '')
      throw new UnreadableExport(`the source exported no version ${version} of ${key.name}`);
    return entry(key, {
      bytes: Buffer.from(exported, 'base64'),
      hmacSecret: Buffer.from(hmacSecret, 'base64'),
      created: key.versions.get(version)?.created ?? '',
    });
  };
  const count = key.latestVersion - archiveBegins + 1;
  const archived = Array.from({ length: count }, (_, at) => entryOf(archiveBegins + at));
  const policy = {
    name: key.name,
    keys: Object.fromEntries(
      archived.map((each, at) => [archiveBegins + at, each] as const).filter(([version]) => version >= first),
    ),
    derived: true,
    kdf: kdfNumbers[key.kdf],
    convergent_encryption: key.convergent,
    convergent_version: key.convergent ? perVersion : 0,
    exportable: before.exportable,
    allow_plaintext_backup: before.allowPlaintextBackup,
    min_decryption_version: first,
    min_encryption_version: key.minEncryptionVersion,
    min_available_version: key.minAvailableVersion,
    latest_version: key.latestVersion,
    archive_version: key.latestVersion,
    archive_min_version: archiveBegins,
    deletion_allowed: key.deletionAllowed,
    type: typeNumbers[key.type],
    backup_info: null,
    restore_info: null,
    auto_rotate_period: key.autoRotatePeriodS * 1e9,
    Imported: key.imported,
    AllowImportedKeyRotation: key.imported && key.allowRotation,
  };
  return Buffer.from(JSON.stringify({ policy, archived_keys: { keys: archived } })).toString('base64');
}

function entry(
  key: SeenKey,
  { bytes, hmacSecret, created }: { readonly bytes: Buffer; readonly hmacSecret: Buffer; readonly created: string },
): object {
  const timeMs = /^\d+$/.test(created) ? Number(created) * 1000 : Date.parse(created) || 0;
  const pair = key.type === 'ed25519' ? ed25519Pair(key, bytes) : { key: bytes.toString('base64') };
  return {
    ...pair,
    hmac_key: hmacSecret.toString('base64'),
    time: new Date(timeMs).toISOString(),
    creation_time: Math.floor(timeMs / 1000),
    ...(key.convergent && { convergent_version: presentConvergentVersion }),
  };
}

/** The peers store an Ed25519 key as its seed and its public half. */
function ed25519Pair({ name }: SeenKey, bytes: Buffer): object {
  try {
    const seed = bytes.subarray(0, 32);
    const pair = createPrivateKey({ key: ed25519Pkcs8(seed), format: 'der', type: 'pkcs8' });
    const publicHalf = createPublicKey(pair).export({ type: 'spki', format: 'der' }).subarray(-32);
    return { key: Buffer.concat([seed, publicHalf]).toString('base64'), public_key: publicHalf.toString('base64') };
  } catch {
    throw new UnreadableExport(`the source exported the key ${name} in a form that cannot be read`);
  }
}

/** Random material of an Ed25519 key is PKCS#8, which ends with the seed. */
const rawOf = ({ type }: SeenKey, material: Buffer): Buffer => (type === 'ed25519' ? material.subarray(-32) : material);
