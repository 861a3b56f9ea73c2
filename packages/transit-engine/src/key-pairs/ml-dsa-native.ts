import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';

/** A parameter set of FIPS 204 tables 1 and 2; sizes in bytes. */
export interface MlDsa {
  /** What OpenSSL and callers call it. */
  readonly name: 'ml-dsa-44' | 'ml-dsa-65' | 'ml-dsa-87';
  readonly parameterSet: '44' | '65' | '87';
  readonly publicKeyBytes: number;
  readonly signatureBytes: number;
}

export const parameterSets: readonly MlDsa[] = [
  { name: 'ml-dsa-44', parameterSet: '44', publicKeyBytes: 1312, signatureBytes: 2420 },
  { name: 'ml-dsa-65', parameterSet: '65', publicKeyBytes: 1952, signatureBytes: 3309 },
  { name: 'ml-dsa-87', parameterSet: '87', publicKeyBytes: 2592, signatureBytes: 4627 },
];

/** The stored form of a private key of any set: ξ of FIPS 204 algorithm 1, from which all else follows. */
export const seedBytes = 32;

const noContext = new Uint8Array();

/** @param seed - 32 bytes, which the caller wipes */
export const mlDsaPrivateKey = ({ name }: MlDsa, seed: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.from(seed.buffer, seed.byteOffset, seed.length), format: 'raw-seed', asymmetricKeyType: name });

/** @param raw - as FIPS 204 algorithm 22 encodes it; every string of the set's length is a key */
export const mlDsaPublicKey = ({ name }: MlDsa, raw: Uint8Array): KeyObject =>
  createPublicKey({
    key: Buffer.from(raw.buffer, raw.byteOffset, raw.length),
    format: 'raw-public',
    asymmetricKeyType: name,
  });

/** The public key's bytes, of either half. */
export const rawPublicKey = (key: KeyObject): Buffer =>
  (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'raw-public' });

const signAside = promisify(sign);
const verifyAside = promisify(verify);

/**
 * Pure, randomised ML-DSA (FIPS 204 algorithm 2), away from the main thread.
 * @param context - at most 255 bytes
 */
export const signMlDsa = (key: KeyObject, message: Uint8Array, context = noContext): Promise<Buffer> =>
  signAside(null, message, { key, context });

/** FIPS 204 algorithm 3; false for a signature of any wrong form. @param context - at most 255 bytes */
export const verifyMlDsa = (key: KeyObject, message: Uint8Array, signature: Uint8Array, context = noContext): Promise<boolean> =>
  verifyAside(null, message, { key, context }, signature);
