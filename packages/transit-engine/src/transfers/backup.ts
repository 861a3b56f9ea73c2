import { createHash } from 'node:crypto';
import { decodeBase64 } from '../formats/base64.ts';
import { decodeKeyRecord, encodeKeyRecord, isKeyField, type KeyRecord } from '../keys/key-record.ts';
import type { NumberedVersion } from '../keys/stored-versions.ts';
import { decodeVersionRecord, encodeVersionRecord, wipeSecrets } from '../keys/version-record.ts';
import { DamagedRecord } from '../values/errors.ts';
import { checkBackup, invalidBackup, type KeyBackup } from './key-backup.ts';
import { looksLikePeerBackup, readPeerBackup } from './peer-backup.ts';

const formatVersion = 1;
const checksumBytes = 32;
const [formatBytes, lengthBytes] = [1, 4];
/** Backups contain no key id, because a restored key gets a new one. */
const noId = '';

/**
 * Encodes a backup: `format u8 | name | settings | version* | SHA-256 of all before it`. Each part follows its length (u32 big-endian);
 * settings and versions are encoded as in their records. The checksum detects damage; it does not authenticate the backup.
 */
export function encodeBackup(name: string, record: KeyRecord, versions: readonly NumberedVersion[]): Buffer {
  const parts = [Buffer.from(name), encodeKeyRecord({ ...record, id: noId })];
  for (const version of versions) parts.push(encodeVersionRecord({ ...version, keyName: name }));
  const length = formatBytes + parts.reduce((sum, part) => sum + lengthBytes + part.length, 0) + checksumBytes;
  const backup = Buffer.allocUnsafeSlow(length);
  let at = backup.writeUInt8(formatVersion, 0);
  for (const part of parts) {
    at = backup.writeUInt32BE(part.length, at);
    backup.set(part, at);
    at += part.length;
    part.fill(0);
  }
  backup.set(checksum(backup.subarray(0, at)), at);
  return backup;
}

/**
 * Decodes a backup of this program, of Vault or of OpenBao, and checks every field as creation and import do.
 * @param text - base64
 * @returns a key whose versions the caller wipes
 * @throws TransitError `invalid_request`
 */
export async function decodeBackup(text: string): Promise<KeyBackup> {
  const backup = decodeBase64(text);
  let key: KeyBackup | undefined;
  try {
    key = looksLikePeerBackup(backup) ? await readPeerBackup(backup) : decodeOwn(backup);
    checkBackup(key);
    return key;
  } catch (error) {
    backup.fill(0);
    wipeSecrets(key?.versions ?? []);
    // Here a damaged record is an error of the caller, not of the store.
    if (error instanceof DamagedRecord) throw invalidBackup(error.message);
    throw error;
  }
}

function decodeOwn(backup: Buffer): KeyBackup {
  const end = backup.length - checksumBytes;
  if (end < formatBytes || backup[0] !== formatVersion) throw invalidBackup('its format is unknown');
  if (!checksum(backup.subarray(0, end)).equals(backup.subarray(end))) throw invalidBackup('its checksum is wrong');
  const [name, settings, ...records] = partsOf(backup.subarray(formatBytes, end));
  if (name === undefined || settings === undefined) throw invalidBackup('a part is missing');
  const record = decodeSettings(settings);
  const first = record.latestVersion - records.length + 1;
  const versions = records.map((bytes, index) => {
    const { keyName: _, ...version } = decodeVersionRecord(bytes);
    return { ...version, version: first + index };
  });
  return { name: name.toString(), record, versions };
}

/** Refuses unknown members: if they were stored, the record could become too large to be written again. */
function decodeSettings(bytes: Buffer): KeyBackup['record'] {
  const { id: _, restore: __, backup, ...record } = decodeKeyRecord(bytes);
  if (!Object.keys(record).every(isKeyField)) throw invalidBackup('its settings have an unknown member');
  return { ...record, ...(backup !== undefined && { backup: { timeMs: backup.timeMs, version: backup.version } }) };
}

function partsOf(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes.length - at < lengthBytes) throw invalidBackup('a part is truncated');
    const end = at + lengthBytes + bytes.readUInt32BE(at);
    if (end > bytes.length) throw invalidBackup('a part is truncated');
    parts.push(bytes.subarray(at + lengthBytes, end));
    at = end;
  }
  return parts;
}

const checksum = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
