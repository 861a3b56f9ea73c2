import { DamagedRecord } from '../errors.ts';
import { parseJsonObject } from '../formats/json-object.ts';
import type { KeyRecord } from './key-record.ts';

/** One version of a key. Whatever writes it writes its key's record too. */
export interface VersionRecord {
  /** The name under which the key was made: where the sweep looks whether the version still belongs to a key. */
  readonly keyName: string;
  /** Unix milliseconds. */
  readonly createdMs: number;
  /** Empty where a key pair's public half alone is known. */
  readonly material: Uint8Array;
  /** Of a key pair, in the form of its kind. */
  readonly publicKey?: Uint8Array;
  /** PEM of the certificates that were set, the end entity's first. */
  readonly certificateChain?: string;
  /** The secret of this version's HMAC operations; empty where the material is that secret. */
  readonly hmacSecret: Uint8Array;
  /** On convergent keys, where it differs from what the key's record says. */
  readonly convergentVersion?: ConvergentVersion;
}

/** How a convergent encryption comes to its nonce: from its caller (1), from the context's HMAC (2), from derived bytes (3). */
export type ConvergentVersion = 1 | 2 | 3;

/** What holds for a version of a key or, without one, for the versions that leave it to their key. Counts on convergent keys only. */
export const convergenceOf = (
  record: Pick<KeyRecord, 'convergentVersion'>,
  { convergentVersion }: Pick<VersionRecord, 'convergentVersion'> = {},
): ConvergentVersion => convergentVersion ?? (record.convergentVersion === -1 ? 3 : record.convergentVersion);

const formatVersion = 1;
const fixedBytes = 5;

/**
 * `format u8 | header length u32 big-endian | header | material | HMAC secret`. The header is JSON in UTF-8 and names the lengths
 * of the two secrets, which themselves are never text, since a string cannot be wiped; what is public is part of it.
 */
export function encodeVersionRecord(version: VersionRecord): Uint8Array {
  const { keyName, createdMs, material, publicKey, certificateChain, hmacSecret, convergentVersion } = version;
  const header = Buffer.from(
    JSON.stringify({
      keyName,
      createdMs,
      materialBytes: material.length,
      hmacSecretBytes: hmacSecret.length,
      publicKey: publicKey && Buffer.from(publicKey).toString('base64'),
      certificateChain,
      convergentVersion,
    }),
  );
  const record = Buffer.alloc(fixedBytes + header.length + material.length + hmacSecret.length);
  record.writeUInt8(formatVersion, 0);
  record.writeUInt32BE(header.length, 1);
  record.set(header, fixedBytes);
  record.set(material, fixedBytes + header.length);
  record.set(hmacSecret, fixedBytes + header.length + material.length);
  return record;
}

/**
 * Reads what {@link encodeVersionRecord} wrote; the secrets are views of `bytes`, which its owner wipes after use.
 * @throws DamagedRecord for anything else
 */
export function decodeVersionRecord(bytes: Uint8Array): VersionRecord {
  const record = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (record.length < fixedBytes || record.readUInt8(0) !== formatVersion) {
    throw new DamagedRecord('a version record has a format that this program does not know');
  }
  const materialAt = fixedBytes + record.readUInt32BE(1);
  const header = parseJsonObject(record.subarray(fixedBytes, materialAt));
  const { keyName, createdMs, materialBytes, hmacSecretBytes, publicKey, certificateChain, convergentVersion } = header;
  const whole =
    typeof keyName === 'string' &&
    typeof createdMs === 'number' &&
    typeof materialBytes === 'number' &&
    typeof hmacSecretBytes === 'number' &&
    materialAt + materialBytes + hmacSecretBytes === record.length &&
    (publicKey === undefined || typeof publicKey === 'string') &&
    (certificateChain === undefined || typeof certificateChain === 'string') &&
    (convergentVersion === undefined || convergentVersion === 1 || convergentVersion === 2 || convergentVersion === 3);
  if (!whole) throw new DamagedRecord('a version record lacks a field');
  const hmacSecretAt = materialAt + materialBytes;
  return {
    keyName,
    createdMs,
    material: record.subarray(materialAt, hmacSecretAt),
    hmacSecret: record.subarray(hmacSecretAt),
    ...(publicKey !== undefined && { publicKey: Buffer.from(publicKey, 'base64') }),
    ...(certificateChain !== undefined && { certificateChain }),
    ...(convergentVersion !== undefined && { convergentVersion }),
  };
}

/** Overwrites the secrets of versions, which may be views of the records that they came in. */
export function wipeSecrets(versions: Iterable<Pick<VersionRecord, 'material' | 'hmacSecret'>>): void {
  for (const { material, hmacSecret } of versions) {
    material.fill(0);
    hmacSecret.fill(0);
  }
}
