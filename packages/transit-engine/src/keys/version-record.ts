import { parseJsonObject } from '../formats/json-object.ts';
import { DamagedRecord } from '../values/errors.ts';
import type { KeyRecord } from './key-record.ts';

/** One version of a key. Every transaction that writes it also writes its key's record, except during a restore. */
export interface VersionRecord {
  /** The key's name. The sweep looks up this key to decide whether the version is still reachable. */
  readonly keyName: string;
  /** Unix milliseconds. */
  readonly createdMs: number;
  /** Empty if only the public half of a key pair is known. */
  readonly material: Uint8Array;
  /** The public half of a key pair, in the format of its type. */
  readonly publicKey?: Uint8Array;
  /** Certificates as PEM, the end-entity certificate first. */
  readonly certificateChain?: string;
  /** The secret for HMAC operations; empty if the material is that secret. */
  readonly hmacSecret: Uint8Array;
  /** Present on convergent keys if the version's value differs from the value in the key's record. */
  readonly convergentVersion?: ConvergentVersion;
}

/** Source of the nonce of a convergent encryption: the caller (1), an HMAC under the context (2), an HMAC under a derived key (3). */
export type ConvergentVersion = 1 | 2 | 3;

/** Returns the convergent version of a key version or, without one, the key's default. Relevant for convergent keys only. */
export const convergenceOf = (
  record: Pick<KeyRecord, 'convergentVersion'>,
  { convergentVersion }: Pick<VersionRecord, 'convergentVersion'> = {},
): ConvergentVersion => convergentVersion ?? (record.convergentVersion === -1 ? 3 : record.convergentVersion);

const formatVersion = 1;
const fixedBytes = 5;

/**
 * `format u8 | header length u32 big-endian | header | material | HMAC secret`. The header is JSON in UTF-8. It
 * contains the public fields and the lengths of the two secrets. The secrets are never text, because a string cannot be wiped.
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
 * Decodes the output of {@link encodeVersionRecord}. The secrets are views of `bytes`, which the caller wipes after use.
 * @throws DamagedRecord for anything else
 */
export function decodeVersionRecord(bytes: Uint8Array): VersionRecord {
  const record = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (record.length < fixedBytes || record.readUInt8(0) !== formatVersion) {
    throw new DamagedRecord('a version record has a format unknown to this program');
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

/** Overwrites the secrets of versions. They may be views of records. */
export function wipeSecrets(versions: Iterable<Pick<VersionRecord, 'material' | 'hmacSecret'>>): void {
  for (const { material, hmacSecret } of versions) {
    material.fill(0);
    hmacSecret.fill(0);
  }
}
