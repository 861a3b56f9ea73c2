import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { AccessError } from '../values/errors.ts';
import { decodeTokenRecord, encodeTokenRecord, type TokenRecord } from './token-record.ts';

/** Maximum length of a batch token, in characters. It leaves ample room for other headers in a request head. */
export const batchTokenCharsMax = 4096;

const prefix = 'b.';
const [saltBytes, tagBytes] = [32, 16];
const info = 'transitd batch token 1';
/** Constant, since each key encrypts only one token. */
const nonce = Buffer.alloc(12);

/** Returns whether the text has the prefix of batch tokens. */
export const isBatchToken = (token: string): boolean => token.startsWith(prefix);

/**
 * Makes a token that contains its record: `b.` and base64url (RFC 4648 §5) of `salt | ciphertext | tag`. It is encrypted by
 * AES-256-GCM under a one-time key, HKDF-SHA-256 (RFC 5869) of `key` with the random salt, so no key is used twice with one nonce
 * (NIST SP 800-38D §8.2.1).
 * @throws AccessError `invalid_request` when it would be too long
 */
export function sealBatchToken(key: Uint8Array, record: TokenRecord): string {
  const salt = randomBytes(saltBytes);
  const tokenKey = oneTimeKey(key, salt);
  const cipher = createCipheriv('aes-256-gcm', tokenKey, nonce);
  const token =
    prefix +
    Buffer.concat([salt, cipher.update(encodeTokenRecord(record)), cipher.final(), cipher.getAuthTag()]).toString('base64url');
  if (token.length > batchTokenCharsMax)
    throw new AccessError(
      'invalid_request',
      `policies, meta and display_name are too long: a batch token can have at most ${batchTokenCharsMax} characters`,
    );
  return token;
}

/** Returns the record in a batch token; undefined if it was not made under this key. @throws AccessError `record_unreadable` */
export function openBatchToken(key: Uint8Array, token: string): TokenRecord | undefined {
  const bytes = Buffer.from(token.slice(prefix.length), 'base64url');
  // The decoder skips invalid characters; without this check one token would have many spellings.
  if (token !== prefix + bytes.toString('base64url') || bytes.length < saltBytes + tagBytes) return undefined;
  const tokenKey = oneTimeKey(key, bytes.subarray(0, saltBytes));
  const decipher = createDecipheriv('aes-256-gcm', tokenKey, nonce);
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  const text = decipher.update(bytes.subarray(saltBytes, -tagBytes));
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  return decodeTokenRecord(text);
}

/** Returns a key object, because creating a cipher takes more than twice as long for a key in a buffer. */
function oneTimeKey(key: Uint8Array, salt: Uint8Array): KeyObject {
  const bytes = new Uint8Array(hkdfSync('sha256', createSecretKey(key), salt, info, 32));
  const oneTime = createSecretKey(bytes);
  bytes.fill(0);
  return oneTime;
}
