import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { pkcs8Of } from '../local/import-material.ts';
import type { SeenKey } from './source-key.ts';

/** Returns the kind of export that contains the material of a key, such as `encryption-key`. */
export function exportKindOf({ type }: Pick<SeenKey, 'type'>): string {
  if (type === 'hmac') return 'hmac-key';
  if (type.endsWith('-cmac')) return 'cmac-key';
  return /^(?:ed25519|ecdsa-|rsa-)/.test(type) ? 'signing-key' : 'encryption-key';
}

/** PKCS#8 of an Ed25519 key without its last 32 bytes, the seed (RFC 8410 §7). */
const ed25519Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');
/** SubjectPublicKeyInfo of an Ed25519 key without its last 32 bytes (RFC 8410 §4). */
const ed25519PublicPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/** Returns PKCS#8 of an Ed25519 key. */
export const ed25519Pkcs8 = (seed: Uint8Array): Buffer => Buffer.concat([ed25519Prefix, seed]);

/** Thrown if the source exported no material of a version, or material that cannot be read. The message quotes nothing. */
export class UnreadableExport extends Error {
  override readonly name = 'UnreadableExport';
}

/**
 * Converts exported material to the form that an import takes: raw bytes, or PKCS#8 of a key pair.
 * @param exported - base64, or PEM of a key pair
 * @throws UnreadableExport
 */
export function materialOf({ type, name }: Pick<SeenKey, 'type' | 'name'>, exported: string): Buffer {
  try {
    if (exported.startsWith('-----BEGIN')) return pkcs8Of(createPrivateKey(exported));
    const bytes = Buffer.from(exported, 'base64');
    return type === 'ed25519' ? ed25519Pkcs8(bytes.subarray(0, 32)) : bytes;
  } catch {
    throw new UnreadableExport(`the source exported the key ${name} in a form that cannot be read`);
  }
}

/** Returns the PEM of a public key as a service shows it: PEM, or base64 of the 32 bytes of an Ed25519 key. */
export function publicPemOf({ type }: Pick<SeenKey, 'type'>, shown: string): string {
  if (type !== 'ed25519' || shown.startsWith('-----BEGIN')) return `${shown}\n`;
  const der = Buffer.concat([ed25519PublicPrefix, Buffer.from(shown, 'base64')]).toString('base64');
  return `-----BEGIN PUBLIC KEY-----\n${der}\n-----END PUBLIC KEY-----\n`;
}

/**
 * Returns random material of a type. It takes the numbers of versions that the source has deleted or hides, so that the later versions
 * keep theirs.
 */
export function placeholderOf({ type, keySize }: Pick<SeenKey, 'type' | 'keySize'>): Buffer {
  if (type === 'ed25519') return pkcs8Of(generateKeyPairSync('ed25519').privateKey);
  const [, curve] = /^ecdsa-p(\d+)$/.exec(type) ?? [];
  if (curve !== undefined) return pkcs8Of(generateKeyPairSync('ec', { namedCurve: curves[curve] ?? '' }).privateKey);
  const [, bits] = /^rsa-(\d+)$/.exec(type) ?? [];
  if (bits !== undefined) return pkcs8Of(generateKeyPairSync('rsa', { modulusLength: Number(bits) }).privateKey);
  if (type === 'hmac') return randomBytes(keySize === 0 ? 32 : keySize);
  return randomBytes(type.startsWith('aes128') ? 16 : 32);
}

const curves: Readonly<Record<string, string>> = { '256': 'P-256', '384': 'P-384', '521': 'P-521' };
