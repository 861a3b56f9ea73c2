import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';

/** Which of the three parameter sets of FIPS 204 table 1, as callers name them. */
export type ParameterSet = '44' | '65' | '87';

/** A parameter set; sizes in bytes (FIPS 204 table 2). */
export interface MlDsa {
  /** What OpenSSL and callers call it. */
  readonly name: `ml-dsa-${ParameterSet}`;
  readonly publicKeyBytes: number;
  readonly signatureBytes: number;
}

const sets: Readonly<Record<ParameterSet, MlDsa>> = {
  44: { name: 'ml-dsa-44', publicKeyBytes: 1312, signatureBytes: 2420 },
  65: { name: 'ml-dsa-65', publicKeyBytes: 1952, signatureBytes: 3309 },
  87: { name: 'ml-dsa-87', publicKeyBytes: 2592, signatureBytes: 4627 },
};

/** The stored form of a private key of any set: ξ of FIPS 204 algorithm 1, from which all else follows. */
export const seedBytes = 32;

const noContext = new Uint8Array();

/** The set of that name; undefined for any other text. */
export const mlDsa = (parameterSet: string): MlDsa | undefined => (isParameterSet(parameterSet) ? sets[parameterSet] : undefined);

const isParameterSet = (text: string): text is ParameterSet => Object.hasOwn(sets, text);

/** @param seed - 32 bytes, which the caller wipes */
export const mlDsaPrivateKey = ({ name }: MlDsa, seed: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.from(seed.buffer, seed.byteOffset, seed.length), format: 'raw-seed', asymmetricKeyType: name });

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
