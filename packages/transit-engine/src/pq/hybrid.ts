import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { type MlDsa, mlDsaPrivateKey, rawPublicKey, seedBytes, signMlDsa, verifyMlDsa } from './ml-dsa.ts';
import { decodePair, encodePair } from './pair.ts';

/** Elliptic-curve types that can be half of a hybrid key, and what node:crypto calls their curves. */
const curves = { 'ecdsa-p256': 'prime256v1', 'ecdsa-p384': 'secp384r1', 'ecdsa-p521': 'secp521r1', ed25519: 'ed25519' } as const;

export type HybridCurve = keyof typeof curves;
export const isHybridCurve = (text: string): text is HybridCurve => Object.hasOwn(curves, text);

/** What a hybrid key is made of. */
export interface HybridKind {
  readonly pqc: MlDsa;
  readonly ec: HybridCurve;
}

/** The halves of one version, private or public. */
export interface HybridKeys {
  readonly pqc: KeyObject;
  readonly ec: KeyObject;
}

/** How the elliptic-curve half signs; Ed25519 has no choice and looks at neither. */
export interface EcOptions {
  /** OpenSSL's name. */
  readonly hash: string;
  /** Of an ECDSA signature: DER, or r ‖ s padded to the curve's size. */
  readonly encoding: 'der' | 'ieee-p1363';
}

/**
 * Material of a new version: the pair of the ML-DSA seed and the elliptic-curve key as PKCS#8 (RFC 5958).
 * @returns bytes that the caller wipes
 */
export function newHybridMaterial({ ec }: HybridKind): Buffer {
  const seed = randomBytes(seedBytes);
  const pkcs8 = newCurveKey(ec).export({ format: 'der', type: 'pkcs8' });
  const material = encodePair({ pqc: seed, ec: pkcs8 });
  seed.fill(0);
  pkcs8.fill(0);
  return material;
}

/** The private halves; undefined for bytes that are not material of this kind. */
export function hybridPrivateKeys({ pqc, ec }: HybridKind, material: Uint8Array): HybridKeys | undefined {
  const pair = decodePair(material);
  if (pair?.pqc.length !== seedBytes) return undefined;
  const curveKey = privateCurveKey(pair.ec);
  return curveKey !== undefined && isOnCurve(curveKey, ec) ? { pqc: mlDsaPrivateKey(pqc, pair.pqc), ec: curveKey } : undefined;
}

export const hybridPublicKeys = ({ pqc, ec }: HybridKeys): HybridKeys => ({
  pqc: createPublicKey(pqc),
  ec: createPublicKey(ec),
});

/** The public halves as one string: the pair of the raw ML-DSA key and the elliptic-curve key as SubjectPublicKeyInfo. */
export const encodeHybridPublicKeys = ({ pqc, ec }: HybridKeys): Buffer =>
  encodePair({ pqc: rawPublicKey(pqc), ec: ec.export({ format: 'der', type: 'spki' }) });

const signAside = promisify(sign);
const verifyAside = promisify(verify);

/** Both halves sign the same message; the answer is the pair of their signatures. */
export async function signHybrid(keys: HybridKeys, message: Uint8Array, { hash, encoding }: EcOptions): Promise<Buffer> {
  const [pqc, ec] = await Promise.all([
    signMlDsa(keys.pqc, message),
    signAside(hashFor(keys.ec, hash), message, { key: keys.ec, dsaEncoding: encoding }),
  ]);
  return encodePair({ pqc, ec });
}

/** Whether both halves hold; false for a signature of any wrong form. */
export async function verifyHybrid(
  { pqc: { signatureBytes } }: HybridKind,
  keys: HybridKeys,
  message: Uint8Array,
  { signature, hash, encoding }: EcOptions & { readonly signature: Uint8Array },
): Promise<boolean> {
  const pair = decodePair(signature);
  if (pair?.pqc.length !== signatureBytes) return false;
  const halves = await Promise.all([
    verifyMlDsa(keys.pqc, message, pair.pqc),
    verifyAside(hashFor(keys.ec, hash), message, { key: keys.ec, dsaEncoding: encoding }, pair.ec),
  ]);
  return halves.every((holds) => holds);
}

const hashFor = ({ asymmetricKeyType }: KeyObject, hash: string): string | null =>
  asymmetricKeyType === 'ed25519' ? null : hash;

const newCurveKey = (curve: HybridCurve): KeyObject =>
  curve === 'ed25519'
    ? generateKeyPairSync('ed25519').privateKey
    : generateKeyPairSync('ec', { namedCurve: curves[curve] }).privateKey;

const isOnCurve = ({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject, curve: HybridCurve): boolean =>
  curve === 'ed25519' ? asymmetricKeyType === 'ed25519' : asymmetricKeyDetails?.namedCurve === curves[curve];

function privateCurveKey(pkcs8: Uint8Array): KeyObject | undefined {
  try {
    return createPrivateKey({ key: Buffer.from(pkcs8.buffer, pkcs8.byteOffset, pkcs8.length), format: 'der', type: 'pkcs8' });
  } catch {
    return undefined; // OpenSSL's complaint tells nobody anything
  }
}
