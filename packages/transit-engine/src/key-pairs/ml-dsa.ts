import { randomBytes } from 'node:crypto';
import { TransitError } from '../errors.ts';
import { notImported, notPublicKey } from './key-formats.ts';
import type { KeyPair, KeyPairBytes, KeyPairScheme, SigningOptions } from './key-pair.ts';
import { type MlDsa, mlDsaPrivateKey, mlDsaPublicKey, rawPublicKey, seedBytes, signMlDsa, verifyMlDsa } from './ml-dsa-native.ts';

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

/** HashML-DSA (FIPS 204 §5.4) and contexts are not offered, and no other algorithm takes their place. @throws TransitError `invalid_request` */
export function checkPure({ prehashed, signatureContext }: SigningOptions): void {
  if (prehashed) throw new TransitError('invalid_request', 'ml-dsa signs whole messages: prehashed input is not supported');
  if (signatureContext.length > 0) throw new TransitError('invalid_request', 'signature_context is for ed25519 keys');
}
