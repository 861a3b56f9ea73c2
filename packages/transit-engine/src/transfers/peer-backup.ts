import { randomBytes } from 'node:crypto';
import { TimeSlice } from '@transitd/event-loop';
import { pemOf } from '../formats/pem.ts';
import { autoRotatePeriodMinS, newKeySettings } from '../keys/key.ts';
import type { Occasion } from '../keys/key-record.ts';
import { type KeyType, keyType } from '../keys/key-type.ts';
import { chainCertificatesMax } from '../x509/certificate-chain.ts';
import { invalidBackup, type KeyBackup, tooManyVersions, versionsMax } from './key-backup.ts';
import { peerKeyPair } from './peer-key-pair.ts';
import { type PeerVersion, peerKeyType } from './peer-key-types.ts';
import { type Members, parseMembers } from './peer-members.ts';

const openingBrace = 0x7b;
const hmacSecretBytes = 32;

/** Whether a backup is JSON. Backups of this program begin with a format number. */
export const looksLikePeerBackup = (backup: Uint8Array): boolean => backup[0] === openingBrace;

/**
 * Decodes a backup of Vault or OpenBao and wipes its bytes. It is JSON with `policy`, which holds the settings and the newer versions, and
 * `archived_keys`, which holds all versions from `archive_min_version` on. Only the fields needed to decode it are checked here.
 * @throws TransitError `invalid_request`
 */
export async function readPeerBackup(backup: Buffer): Promise<KeyBackup> {
  const whole = await parseMembers(backup);
  const policy = whole.object('policy');
  const slice = new TimeSlice();
  const entries = await entriesOf(whole, policy, slice);
  const type = keyType(await peerKeyType(policy, entries, slice));
  const convergent = policy.flag('convergent_encryption');
  const latestVersion = policy.integer('latest_version');
  const versions: KeyBackup['versions'][number][] = [];
  for (const { version, entry } of entries) {
    if (slice.isOver) await slice.next();
    versions.push({ version, ...readVersion(entry, type) });
  }
  const latest = versions.at(-1);
  if (latest === undefined) throw invalidBackup('it has no version');
  const convergentVersion = policy.integer('convergent_version');
  return {
    name: policy.text('name'),
    record: {
      ...newKeySettings,
      type: type.name,
      derived: policy.flag('derived'),
      convergent,
      kdf: policy.flag('derived') ? kdfName(policy.integer('kdf')) : newKeySettings.kdf,
      convergentVersion: convergent ? convergentMode(convergentVersion) : newKeySettings.convergentVersion,
      exportable: policy.flag('exportable'),
      allowPlaintextBackup: policy.flag('allow_plaintext_backup'),
      deletionAllowed: policy.flag('deletion_allowed'),
      imported: policy.flag('Imported'),
      allowRotation: policy.flag('AllowImportedKeyRotation'),
      keySize: type.sizes === undefined ? 0 : latest.material.length,
      autoRotatePeriodS: autoRotatePeriodS(policy.number('auto_rotate_period')),
      latestVersion,
      latestCreatedMs: latest.createdMs,
      minDecryptionVersion: Math.max(policy.integer('min_decryption_version'), 1),
      minEncryptionVersion: policy.integer('min_encryption_version'),
      minAvailableVersion: policy.integer('min_available_version'),
      ...(policy.flag('soft_deleted') && { softDeleted: true }),
      ...lastBackup(policy),
    },
    versions,
  };
}

/** Returns the key's versions, ascending, from the policy or else from the archive. */
async function entriesOf(whole: Members, policy: Members, slice: TimeSlice): Promise<PeerVersion[]> {
  const latestVersion = policy.integer('latest_version');
  const minAvailableVersion = policy.integer('min_available_version');
  if (latestVersion - Math.max(minAvailableVersion, 1) >= versionsMax) throw tooManyVersions();
  const [keys, archived] = [policy.object('keys'), archivedKeys(whole)];
  const archiveBegins = policy.integer('archive_min_version');
  const entries: PeerVersion[] = [];
  for (let version = Math.max(minAvailableVersion, 1); version <= latestVersion; version++) {
    if (slice.isOver) await slice.next();
    const entry = keys.has(String(version)) ? keys.object(String(version)) : archived(version - archiveBegins);
    if (entry === undefined) throw invalidBackup(`version ${version} is missing`);
    entries.push({ version, entry });
  }
  return entries;
}

function readVersion(entry: Members, { name, materialIsHmacSecret }: KeyType): Omit<KeyBackup['versions'][number], 'version'> {
  const hmacSecret = entry.bytes('hmac_key');
  const convergentVersion = entry.integer('convergent_version');
  return {
    createdMs: createdMs(entry),
    ...(peerKeyPair(name, entry) ?? { material: entry.bytes('key') }),
    ...chainOf(entry),
    // The oldest versions have no HMAC secret.
    hmacSecret:
      materialIsHmacSecret === true ? Buffer.alloc(0) : hmacSecret.length > 0 ? hmacSecret : randomBytes(hmacSecretBytes),
    ...(isConvergentVersion(convergentVersion) && { convergentVersion }),
  };
}

/** Converts certificates from DER to PEM. */
function chainOf(entry: Members): { readonly certificateChain?: string } {
  const certificates = entry.texts('certificate_chain', chainCertificatesMax);
  if (certificates.length === 0) return {};
  return {
    certificateChain: certificates.map((der) => pemOf({ label: 'CERTIFICATE', der: Buffer.from(der, 'base64') })).join(''),
  };
}

/** Returns the last backup before or at the time of this one. */
function lastBackup(policy: Members): { readonly backup?: Occasion } {
  if (!policy.has('backup_info')) return {};
  const info = policy.object('backup_info');
  return { backup: { timeMs: Date.parse(info.text('time')), version: info.integer('version') } };
}

/** `time` has fractions of a second. The oldest versions have only `creation_time`, in seconds. */
function createdMs(entry: Members): number {
  const timeMs = Date.parse(entry.text('time'));
  return timeMs > 0 ? timeMs : entry.integer('creation_time') * 1000;
}

/** Converts nanoseconds. A period below the minimum is raised to it, so that automatic rotation stays enabled. */
const autoRotatePeriodS = (periodNs: number): number =>
  periodNs > 0 ? Math.max(Math.floor(periodNs / 1e9), autoRotatePeriodMinS) : periodNs;

function archivedKeys(whole: Members): (index: number) => Members | undefined {
  const archive = whole.has('archived_keys') ? whole.object('archived_keys') : undefined;
  return archive?.has('keys') === true ? archive.objects('keys') : () => undefined;
}

function kdfName(number: number): 'hkdf_sha256' | 'hmac-sha256-counter' {
  if (number !== 0 && number !== 1) throw invalidBackup('its key derivation is unknown');
  return number === 1 ? 'hkdf_sha256' : 'hmac-sha256-counter';
}

/** 0 means version 1, from before the field existed. Above 2, each key version has its own convergent version. */
function convergentMode(number: number): -1 | 1 | 2 {
  if (number === 0 || number === 1) return 1;
  return number === 2 ? 2 : -1;
}

const isConvergentVersion = (number: number): number is 1 | 2 | 3 => number === 1 || number === 2 || number === 3;
