import { TransitError } from '../errors.ts';
import { decodeBase64 } from '../formats/base64.ts';
import { parseVersioned, type Versioned } from '../formats/ciphertext.ts';
import type { LoadedKey } from '../keys/key-cache.ts';

/** The two kinds of MAC, which differ in no rule about versions and strings. */
export type MacKind = 'HMAC' | 'CMAC';

/** The version to make a MAC with: the latest, unless another is asked for. @throws TransitError `key_version_unavailable` */
export function versionForMac(kind: MacKind, { record }: LoadedKey, asked: number): number {
  const { latestVersion, minEncryptionVersion, minDecryptionVersion } = record;
  if (asked === 0) return latestVersion;
  if (asked < 0) throw unavailable('key version does not exist (cannot be negative)');
  if (asked > latestVersion) throw unavailable(`key version does not exist; latest key version is ${latestVersion}`);
  if (asked < minEncryptionVersion) {
    throw unavailable(`cannot generate ${kind}: version is too old (disallowed by policy)`);
  }
  if (asked < minDecryptionVersion) throw unavailable('no such key version');
  return asked;
}

/** Takes a MAC to verify apart. @throws TransitError `invalid_ciphertext`, `key_version_unavailable` */
export function parseMac(kind: MacKind, { record }: LoadedKey, text: string, prefix: string): { version: number; mac: Buffer } {
  const parsed = versioned(kind, text, prefix);
  if (parsed.version > record.latestVersion) throw invalid(`invalid ${kind}: version is too new`);
  if (parsed.version < record.minDecryptionVersion) {
    throw unavailable(`cannot verify ${kind}: version is too old (disallowed by policy)`);
  }
  return { version: parsed.version, mac: decoded(kind, parsed.payload) };
}

function versioned(kind: MacKind, text: string, prefix: string): Versioned {
  const parsed = parseVersioned(text, prefix);
  if (typeof parsed !== 'string') return parsed;
  throw invalid(parsed === 'no prefix' ? `invalid ${kind} to verify: no prefix` : `invalid ${kind}: ${parsed}`);
}

function decoded(kind: MacKind, payload: string): Buffer {
  try {
    return decodeBase64(payload);
  } catch (error) {
    if (!(error instanceof TransitError)) throw error;
    throw invalid(`unable to decode verification ${kind} as base64: ${error.message}`);
  }
}

const unavailable = (message: string): TransitError => new TransitError('key_version_unavailable', message);
const invalid = (message: string): TransitError => new TransitError('invalid_ciphertext', message);
