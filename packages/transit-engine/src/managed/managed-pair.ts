import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { inPieces } from '@transitd/event-loop';
import { noBytes } from '../algorithms/aead.ts';
import type { Hash } from '../algorithms/hash-algorithm.ts';
import { derTag, encodeDer, encodeDerInteger } from '../formats/der.ts';
import { type Curve, curves } from '../key-pairs/ec-forms.ts';
import { ecdsaOptions } from '../key-pairs/ecdsa.ts';
import type { KeyPair, KeyPairScheme, SigningOptions } from '../key-pairs/key-pair.ts';
import { rsaOptions } from '../key-pairs/rsa-signature.ts';
import { ecdsaSchemes, rsaSchemes } from '../key-pairs/schemes.ts';
import { DamagedRecord, TransitError } from '../values/errors.ts';
import { checkUsage } from './managed-cipher.ts';
import type { ManagedKey, ManagedSigningInput } from './provider.ts';

/** The schemes of public halves of managed keys, by RSA modulus size or OpenSSL's name of the curve. */
const schemes: ReadonlyMap<string | number | undefined, KeyPairScheme> = new Map<string | number, KeyPairScheme>([
  [2048, rsaSchemes[2048]],
  [3072, rsaSchemes[3072]],
  [4096, rsaSchemes[4096]],
  ['prime256v1', ecdsaSchemes['P-256']],
  ['secp384r1', ecdsaSchemes['P-384']],
  ['secp521r1', ecdsaSchemes['P-521']],
]);

/**
 * Checks an imported public half of a managed key and returns its scheme; undefined for an unsupported, wrongly encoded or weak key.
 * @throws TransitError `busy_generation`
 */
export async function managedScheme(publicKey: Uint8Array): Promise<KeyPairScheme | undefined> {
  const scheme = managedSchemeOf(publicKey);
  try {
    await scheme?.check({ material: noBytes, publicKey });
  } catch (error) {
    if (error instanceof TransitError && error.code !== 'busy_generation') return undefined;
    throw error;
  }
  return scheme;
}

/** Returns the scheme of a public half of a managed key, which it does not check; undefined for an unsupported key. */
export function managedSchemeOf(publicKey: Uint8Array): KeyPairScheme | undefined {
  const { modulusLength, namedCurve } = readPublicKey(publicKey)?.asymmetricKeyDetails ?? {};
  return schemes.get(modulusLength ?? namedCurve);
}

/**
 * Adapts a managed key to the interface of a key pair. The system that holds the key signs; this node verifies. Every new signature is
 * verified before it is returned, so that a signature made with a wrong key is never returned. The key's mechanism selects PSS or PKCS#1
 * v1.5 and overrides the request. `auto` signs PSS with a salt as long as the hash, because few modules support a longer one.
 * @throws DamagedRecord for an unsupported public half
 */
export async function managedPair(key: ManagedKey, publicKey: Uint8Array | undefined): Promise<KeyPair> {
  if (publicKey === undefined) return { verify: () => Promise.reject(noPair(key)), sign: () => Promise.reject(noPair(key)) };
  // The public half was checked when it was stored; a check for each use would take milliseconds.
  const own = managedSchemeOf(publicKey)?.load({ material: noBytes, publicKey });
  if (own === undefined) throw new DamagedRecord('the public half of a managed key is of an unsupported type');
  const { modulusLength, namedCurve } = readPublicKey(publicKey)?.asymmetricKeyDetails ?? {};
  const group = Object.values(curves).find(({ openssl }) => openssl === namedCurve) ?? modulusLength ?? 0;
  return {
    async sign(input, requested) {
      checkUsage(key, 'sign');
      const options = optionsOf(key, requested);
      const made = await key.sign(await signingInput(group, input, options));
      const signature = key.algorithm === 'ecdsa' && options.marshaling === 'asn1' ? derSignature(made) : made;
      if (await own.verify(input, signature, options)) return signature;
      throw new TransitError('managed_key_unavailable', `managed key ${key.name} is not the one that this version was made with`);
    },
    async verify(input, signature, options) {
      checkUsage(key, 'verify');
      return own.verify(input, signature, optionsOf(key, options));
    },
  };
}

const noPair = ({ name }: ManagedKey): TransitError =>
  new TransitError('invalid_request', `managed key ${name} does not support signing`);

function optionsOf({ algorithm }: ManagedKey, options: SigningOptions): SigningOptions {
  if (algorithm === 'rsa-pss') return { ...options, signatureAlgorithm: 'pss' };
  return algorithm === 'rsa-pkcs1v15' ? { ...options, signatureAlgorithm: 'pkcs1v15' } : options;
}

/** @param group - the curve of ECDSA, or the bits of the modulus of RSA @throws TransitError `invalid_request` */
async function signingInput(group: Curve | number, input: Uint8Array, options: SigningOptions): Promise<ManagedSigningInput> {
  if (typeof group !== 'number') {
    const { hash } = ecdsaOptions(group, input, options);
    return { digest: options.prehashed || hash === null ? input : await digestOf(hash, input), hash, saltBytes: 0 };
  }
  const scheme = rsaOptions(group, input, options);
  const hash = options.hash === 'none' ? null : scheme.hash.openssl;
  const digest = options.prehashed || hash === null ? input : await digestOf(hash, input);
  return { digest, hash, saltBytes: scheme.padding === 'pss' ? saltBytes(scheme) : 0 };
}

const saltBytes = ({ saltLength, hash }: { readonly saltLength: number | 'auto'; readonly hash: Hash }): number =>
  saltLength === 'auto' ? hash.digestBytes : saltLength;

async function digestOf(hash: string, input: Uint8Array): Promise<Buffer> {
  const hashing = createHash(hash);
  await inPieces(input, (piece) => hashing.update(piece));
  return hashing.digest();
}

/** Converts r ‖ s to DER (RFC 3279 §2.2.3). */
function derSignature(signature: Buffer): Buffer {
  const half = signature.length / 2;
  const [r, s] = [signature.subarray(0, half), signature.subarray(half)];
  return encodeDer(derTag.sequence, encodeDerInteger(r), encodeDerInteger(s));
}

function readPublicKey(spki: Uint8Array): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}
