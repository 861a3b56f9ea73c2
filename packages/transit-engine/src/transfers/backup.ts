import { createHash } from 'node:crypto';
import { inPieces, runAtOnce, type Steps, TimeSlice } from '@transitd/event-loop';
import { decodeBase64 } from '../formats/base64.ts';
import { decodeKeyRecord, encodeKeyRecord, isKeyField, type KeyRecord } from '../keys/key-record.ts';
import type { NumberedVersion } from '../keys/stored-versions.ts';
import { decodeVersionRecord, encodeVersionRecord, wipeSecrets } from '../keys/version-record.ts';
import { DamagedRecord } from '../values/errors.ts';
import { checkBackup, invalidBackup, type KeyBackup, tooManyVersions, versionsMax } from './key-backup.ts';
import { looksLikePeerBackup, readPeerBackup } from './peer-backup.ts';

const formatVersion = 1;
const checksumBytes = 32;
const [formatBytes, lengthBytes] = [1, 4];
const hashedPerStep = 1024 * 1024;
/** Maximum bytes of the name, of the settings, and of a version's record: more than this program writes. Their JSON is parsed at once. */
const [nameBytesMax, settingsBytesMax, versionBytesMax] = [4 * 1024, 64 * 1024, 128 * 1024];
/** Backups contain no key id, because a restored key gets a new one. */
const noId = '';

/**
 * Encodes a backup: `format u8 | name | settings | version* | SHA-256 of all before it`. Each part follows its length (u32 big-endian);
 * settings and versions are encoded as in their records. The checksum detects damage; it does not authenticate the backup.
 */
export function* backupSteps(name: string, record: KeyRecord, versions: readonly NumberedVersion[]): Steps<Buffer> {
  // A restored key counts from zero, and is deleted only if that is requested again.
  const { spentVersions: _, scheduledDeletionMs: __, ...settings } = record;
  const parts = [Buffer.from(name), encodeKeyRecord({ ...settings, id: noId })];
  for (const version of versions) {
    parts.push(encodeVersionRecord({ ...version, keyName: name }));
    yield;
  }
  const length = formatBytes + parts.reduce((sum, part) => sum + lengthBytes + part.length, 0) + checksumBytes;
  const backup = Buffer.allocUnsafeSlow(length);
  let at = backup.writeUInt8(formatVersion, 0);
  for (const part of parts) {
    at = backup.writeUInt32BE(part.length, at);
    backup.set(part, at);
    at += part.length;
    part.fill(0);
    yield;
  }
  const hash = createHash('sha256');
  for (let from = 0; from < at; from += hashedPerStep) {
    hash.update(backup.subarray(from, Math.min(at, from + hashedPerStep)));
    yield;
  }
  backup.set(hash.digest(), at);
  return backup;
}

/** Encodes a backup without yielding to other work, for keys of few versions. */
export const encodeBackup = (name: string, record: KeyRecord, versions: readonly NumberedVersion[]): Buffer =>
  runAtOnce(backupSteps(name, record, versions));

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
    key = looksLikePeerBackup(backup) ? await readPeerBackup(backup) : await decodeOwn(backup);
    await checkBackup(key);
    return key;
  } catch (error) {
    backup.fill(0);
    wipeSecrets(key?.versions ?? []);
    // Here a damaged record is an error of the caller, not of the store.
    if (error instanceof DamagedRecord) throw invalidBackup(error.message);
    throw error;
  }
}

/** Decodes one version after the other, so that nothing is built of the versions after a malformed one. */
async function decodeOwn(backup: Buffer): Promise<KeyBackup> {
  const end = backup.length - checksumBytes;
  if (end < formatBytes || backup[0] !== formatVersion) throw invalidBackup('its format is unknown');
  if (!(await checksum(backup.subarray(0, end))).equals(backup.subarray(end))) throw invalidBackup('its checksum is wrong');
  const parts = partsOf(backup.subarray(formatBytes, end));
  const [name, settings] = [nextPart(parts, nameBytesMax), nextPart(parts, settingsBytesMax)];
  const record = decodeSettings(settings);
  const first = Math.max(record.minAvailableVersion, 1);
  const versions: KeyBackup['versions'][number][] = [];
  const slice = new TimeSlice();
  for (const part of parts) {
    if (slice.isOver) await slice.next();
    if (versions.length === versionsMax) throw tooManyVersions();
    if (part.length > versionBytesMax) throw invalidBackup('a version is too long');
    const { keyName: _, ...version } = decodeVersionRecord(part);
    versions.push({ ...version, version: first + versions.length });
  }
  return { name: name.toString(), record, versions };
}

function nextPart(parts: Iterator<Buffer>, bytesMax: number): Buffer {
  const { done, value } = parts.next();
  if (done === true) throw invalidBackup('a part is missing');
  if (value.length > bytesMax) throw invalidBackup('its name or settings are too long');
  return value;
}

/** Refuses unknown members: if they were stored, the record could become too large to be written again. */
function decodeSettings(bytes: Buffer): KeyBackup['record'] {
  const { id: _, restore: __, backup, ...record } = decodeKeyRecord(bytes);
  if (!Object.keys(record).every(isKeyField)) throw invalidBackup('its settings have an unknown member');
  return { ...record, ...(backup !== undefined && { backup: { timeMs: backup.timeMs, version: backup.version } }) };
}

function* partsOf(bytes: Buffer): Generator<Buffer, undefined> {
  for (let at = 0; at < bytes.length; ) {
    if (bytes.length - at < lengthBytes) throw invalidBackup('a part is truncated');
    const end = at + lengthBytes + bytes.readUInt32BE(at);
    if (end > bytes.length) throw invalidBackup('a part is truncated');
    yield bytes.subarray(at + lengthBytes, end);
    at = end;
  }
}

async function checksum(bytes: Uint8Array): Promise<Buffer> {
  const hash = createHash('sha256');
  await inPieces(bytes, (piece) => hash.update(piece));
  return hash.digest();
}
