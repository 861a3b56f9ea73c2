import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { AccessError } from '../errors.ts';
import { decodeTokenRecord, encodeTokenRecord, type TokenRecord } from './token-record.ts';

/** Longest batch token, in characters: with every other header it stays far below what a head may hold. */
export const batchTokenCharsMax = 4096;

const prefix = 'b.';
const [saltBytes, tagBytes] = [32, 16];
const info = 'transitd batch token 1';
/** Each key encrypts one token. */
const nonce = Buffer.alloc(12);

/** Whether it can be a batch token: only those begin like this. */
export const isBatchToken = (token: string): boolean => token.startsWith(prefix);

/**
 * A token that carries its record: `b.` and base64url (RFC 4648 §5) of `salt | ciphertext | tag`. AES-256-GCM under a key of its own,
 * HKDF-SHA-256 (RFC 5869) of `key` with the random salt, so that no nonce ever meets a key twice (NIST SP 800-38D §8.2.1).
 * @throws AccessError `invalid_request` when it would be too long
 */
export function sealBatchToken(key: Uint8Array, record: TokenRecord): string {
  const salt = randomBytes(saltBytes);
  const tokenKey = oneTimeKey(key, salt);
  const cipher = createCipheriv('aes-256-gcm', tokenKey, nonce);
  const token =
    prefix +
    Buffer.concat([salt, cipher.update(encodeTokenRecord(record)), cipher.final(), cipher.getAuthTag()]).toString('base64url');
  tokenKey.fill(0);
  if (token.length > batchTokenCharsMax)
    throw new AccessError(
      'invalid_request',
      `policies, meta and display_name of a batch token come to more than it can hold, ${batchTokenCharsMax} characters`,
    );
  return token;
}

/** The record that a batch token carries; undefined when it is none of ours. @throws AccessError `record_unreadable` */
export function openBatchToken(key: Uint8Array, token: string): TokenRecord | undefined {
  const bytes = Buffer.from(token.slice(prefix.length), 'base64url');
  // One token, one spelling: a decoder that skips characters would give it others.
  if (token !== prefix + bytes.toString('base64url') || bytes.length < saltBytes + tagBytes) return undefined;
  const tokenKey = oneTimeKey(key, bytes.subarray(0, saltBytes));
  const decipher = createDecipheriv('aes-256-gcm', tokenKey, nonce);
  tokenKey.fill(0);
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  const text = decipher.update(bytes.subarray(saltBytes, -tagBytes));
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  return decodeTokenRecord(text);
}

const oneTimeKey = (key: Uint8Array, salt: Uint8Array): Buffer => Buffer.from(hkdfSync('sha256', key, salt, info, 32));
