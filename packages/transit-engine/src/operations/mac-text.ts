import { decodeBase64 } from '../formats/base64.ts';
import { parseVersioned, type Versioned } from '../formats/ciphertext.ts';
import type { LoadedKey } from '../keys/key-cache.ts';
import { checkEnabled } from '../keys/key-record.ts';
import { TransitError } from '../values/errors.ts';

/** Both kinds follow the same rules about versions and strings; only the error texts differ. */
export type MacKind = 'HMAC' | 'CMAC';

/** Parses a MAC to verify. @throws TransitError `invalid_ciphertext`, `key_version_unavailable` */
export function parseMac(kind: MacKind, { record }: LoadedKey, text: string, prefix: string): { version: number; mac: Buffer } {
  const { version, payload } = parseText(kind, text, prefix);
  if (version > record.latestVersion) throw invalid(`invalid ${kind}: version is too new`);
  if (version < record.minDecryptionVersion) {
    throw new TransitError('key_version_unavailable', `cannot verify ${kind}: version is too old (disallowed by policy)`);
  }
  checkEnabled(record, version);
  return { version, mac: decodeMac(kind, payload) };
}

function parseText(kind: MacKind, text: string, prefix: string): Versioned {
  const parsed = parseVersioned(text, prefix);
  if (typeof parsed !== 'string') return parsed;
  throw invalid(parsed === 'no prefix' ? `invalid ${kind} to verify: no prefix` : `invalid ${kind}: ${parsed}`);
}

function decodeMac(kind: MacKind, payload: string): Buffer {
  try {
    return decodeBase64(payload);
  } catch (error) {
    if (!(error instanceof TransitError)) throw error;
    throw invalid(`unable to decode verification ${kind} as base64: ${error.message}`);
  }
}

const invalid = (message: string): TransitError => new TransitError('invalid_ciphertext', message);
