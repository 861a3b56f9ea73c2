import { createPrivateKey, createPublicKey, type KeyObject, randomBytes } from 'node:crypto';
import { TransitError } from '../values/errors.ts';
import { notImported, notPublicKey } from './key-formats.ts';
import type { KeyPair, KeyPairBytes, KeyPairScheme, SigningOptions } from './key-pair.ts';
import { signNatively, verifyNatively } from './native-signature.ts';

/** A parameter set of FIPS 204 tables 1 and 2; sizes in bytes. */
export interface MlDsa {
  /** Name of the set in OpenSSL and in the API. */
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

/** Bytes of a stored private key of any set: the seed ξ of FIPS 204 algorithm 1. */
export const seedBytes = 32;

/** Pure ML-DSA (FIPS 204 §5.2) without a context. The private half is the seed of 32 bytes, the public half is raw. */
export function mlDsaPairs(set: MlDsa): KeyPairScheme {
  const publicHalf = (seed: Uint8Array): Buffer => rawPublicKey(mlDsaPrivateKey(set, seed));
  return {
    versionName: set.name,
    fits: (materialBytes) => materialBytes === seedBytes,
    async generate() {
      const material = randomBytes(seedBytes);
      return { material, publicKey: publicHalf(material) };
    },
    load: (bytes) => load(set, bytes),
    checkCost: { pair: 0.002, publicHalf: 0.0002 },
    async check({ material, publicKey }) {
      if (publicKey.length !== set.publicKeyBytes) throw notPublicKey();
      if (material.length > 0 && !publicHalf(material).equals(publicKey)) throw notImported('key pair does not match');
    },
    publicText: (publicKey) => Buffer.from(publicKey).toString('base64'),
    certified: {
      privateKey: (material) => mlDsaPrivateKey(set, material),
      publicKey: (publicKey) => mlDsaPublicKey(set, publicKey),
    },
    exported: { form: 'base64', of: (material) => Buffer.from(material) },
  };
}

function load(set: MlDsa, { material, publicKey: raw }: KeyPairBytes): KeyPair {
  const publicKey = mlDsaPublicKey(set, raw);
  const privateKey = material.length === 0 ? undefined : mlDsaPrivateKey(set, material);
  return {
    ...(privateKey && {
      sign: async (input, options) => {
        checkPure(options);
        return signMlDsa(privateKey, input);
      },
    }),
    async verify(input, signature, options) {
      checkPure(options);
      return verifyMlDsa(publicKey, input, signature);
    },
  };
}

/** Refuses HashML-DSA (FIPS 204 §5.4) and contexts, which are not supported. @throws TransitError `invalid_request` */
export function checkPure({ prehashed, signatureContext }: SigningOptions): void {
  if (prehashed) throw new TransitError('invalid_request', 'ml-dsa signs whole messages: prehashed input is not supported');
  if (signatureContext.length > 0) throw new TransitError('invalid_request', 'signature_context is for ed25519 keys');
}

const noContext = new Uint8Array();

/** @param seed - 32 bytes, which the caller wipes */
export const mlDsaPrivateKey = ({ name }: MlDsa, seed: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.from(seed.buffer, seed.byteOffset, seed.length), format: 'raw-seed', asymmetricKeyType: name });

/** @param raw - the public key as encoded by FIPS 204 algorithm 22; any bytes of the parameter set's length are a valid key */
export const mlDsaPublicKey = ({ name }: MlDsa, raw: Uint8Array): KeyObject =>
  createPublicKey({
    key: Buffer.from(raw.buffer, raw.byteOffset, raw.length),
    format: 'raw-public',
    asymmetricKeyType: name,
  });

/** Returns the raw public key, given either half of the key pair. */
export const rawPublicKey = (key: KeyObject): Buffer =>
  (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'raw-public' });

/**
 * Signs with pure, randomized ML-DSA (FIPS 204 algorithm 2) on the thread pool.
 * @param context - at most 255 bytes
 */
export const signMlDsa = (key: KeyObject, message: Uint8Array, context = noContext): Promise<Buffer> =>
  signNatively(key, message, { hash: null, context, isSlow: true });

/** Verifies a signature (FIPS 204 algorithm 3) on the thread pool; false for a malformed one. @param context - at most 255 bytes */
export const verifyMlDsa = (key: KeyObject, message: Uint8Array, signature: Uint8Array, context = noContext): Promise<boolean> =>
  verifyNatively(key, message, signature, { hash: null, context, isSlow: true });
