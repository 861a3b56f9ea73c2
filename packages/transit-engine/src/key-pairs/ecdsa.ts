import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { nextTurn } from '@transitd/event-loop';
import { isDigestLength, signatureHash } from '../algorithms/hash-algorithm.ts';
import { derTag, encodeOid, parseDerSequence, parseFirstDer } from '../formats/der.ts';
import { TransitError } from '../values/errors.ts';
import {
  type Curve,
  type CurveName,
  curves,
  ecPublicKey,
  encodeEcPair,
  parseEcPrivateKey,
  pointOf,
  uncompressedPoint,
} from './ec-forms.ts';
import {
  encodeSpki,
  notImported,
  notPkcs8,
  notPublicKey,
  parsePkcs8,
  parseSpki,
  publicDerOf,
  publicPemOf,
} from './key-formats.ts';
import type { KeyPair, KeyPairBytes, KeyPairScheme, SigningOptions } from './key-pair.ts';
import { signNatively, verifyNatively } from './native-signature.ts';

const generate = promisify(generateKeyPair);

/**
 * ECDSA (FIPS 186-5 §6) on one curve. Imported halves are converted to one format: PKCS#8 with the named curve and the public point, and
 * SubjectPublicKeyInfo with the uncompressed point.
 */
export function ecdsa(curveName: CurveName, keyType: string): KeyPairScheme {
  const curve = curves[curveName];
  const algorithm = Buffer.concat([ecPublicKey, encodeOid(curve.oid)]);
  const spkiOf = (point: Uint8Array): Buffer => encodeSpki(algorithm, point);

  /**
   * Computes the public point of a private number, and encodes the pair. @throws TransitError `invalid_request` for a number out of range
   */
  const fromNumber = (number: Uint8Array, givenPoint?: Uint8Array): KeyPairBytes => {
    const point = pointOf(curve, number);
    if (givenPoint !== undefined && !point.equals(givenPoint)) throw notImported('key pair does not match');
    return encodeEcPair(curve, point, number);
  };

  const fromPkcs8 = (der: Uint8Array): KeyPairBytes => {
    const pkcs8 = parsePkcs8(der);
    if (pkcs8 === undefined) throw notPkcs8();
    if (!algorithm.equals(pkcs8.algorithm)) throw notImported(wrongAlgorithm(pkcs8.algorithm, keyType, curveName));
    const ec = parseEcPrivateKey(pkcs8.privateKey, curve);
    if (ec === undefined) throw notPkcs8();
    try {
      return fromNumber(ec.number, ec.point);
    } finally {
      ec.number.fill(0);
    }
  };

  const fromPublicDer = (der: Uint8Array): Buffer => {
    const spki = parseSpki(der);
    if (spki === undefined) throw notPublicKey();
    if (!algorithm.equals(spki.algorithm)) throw notImported(wrongAlgorithm(spki.algorithm, keyType, curveName));
    return spkiOf(uncompressedPoint(curve, spki.publicKey) ?? notOnCurve());
  };

  const spkiBytes = spkiOf(new Uint8Array(1 + 2 * curve.coordinateBytes)).length;
  const pkcs8Bytes = fromNumber(oneAs(curve)).material.length;
  return {
    versionName: curveName,
    fits: (materialBytes) => materialBytes === pkcs8Bytes,
    async generate() {
      const { privateKey, publicKey } = await generate('ec', { namedCurve: curve.openssl });
      return {
        material: privateKey.export({ type: 'pkcs8', format: 'der' }),
        publicKey: publicKey.export({ type: 'spki', format: 'der' }),
      };
    },
    load: (bytes) => load(curve, bytes, spkiBytes),
    checkCost: { pair: curve.pairCheckCost, publicHalf: 0.0002 },
    async check({ material, publicKey }) {
      const given = Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.length);
      if (material.length === 0) {
        if (!given.equals(fromPublicDer(publicKey))) throw notPublicKey();
        return;
      }
      const pair = fromPkcs8(material);
      const same = Buffer.compare(pair.material, material) === 0 && given.equals(pair.publicKey);
      pair.material.fill(0);
      if (!same) throw notImported('key pair does not match');
    },
    publicText: publicPemOf,
    certified: {
      privateKey: privateHandle,
      publicKey: (spki) => createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' }),
    },
    // The peers export these keys without a final newline.
    exported: {
      form: 'text',
      of(material) {
        const pem = Buffer.from(privateHandle(material).export({ type: 'sec1', format: 'pem' }));
        return pem.subarray(0, pem.length - 1);
      },
      publicText: (publicKey) => publicPemOf(publicKey).trimEnd(),
    },
    transfer: {
      fromPkcs8: async (der) => fromPkcs8(der),
      fromPublicPem: async (pem) => fromPublicDer(publicDerOf(pem)),
      toPkcs8: (material) => Buffer.from(material),
    },
  };
}

function load(curve: Curve, { material, publicKey: spki }: KeyPairBytes, spkiBytes: number): KeyPair {
  const publicKey = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  const privateKey = material.length === 0 ? undefined : privateHandle(material);
  const point = Uint8Array.from(spki.subarray(spkiBytes - 1 - 2 * curve.coordinateBytes));
  return {
    ...(privateKey && { sign: (input, options) => sign(curve, privateKey, input, options) }),
    verify: (input, signature, options) => verify(curve, { publicKey, point }, input, signature, options),
  };
}

/** Loads the code of a curve for digests, which few nodes need. */
const signerOfDigests = async ({ forDigests }: Curve) => (await import('@noble/curves/nist.js'))[forDigests];

async function sign(curve: Curve, key: KeyObject, input: Uint8Array, options: SigningOptions): Promise<Buffer> {
  const { hash, dsaEncoding, format } = ecdsaOptions(curve, input, options);
  if (!options.prehashed) return signNatively(key, input, { hash, dsaEncoding, isSlow: isSlow(curve) });
  const ecdsa = await signerOfDigests(curve);
  if (isSlow(curve)) await nextTurn();
  const der = key.export({ type: 'sec1', format: 'der' });
  const number = parseEcPrivateKey(der, curve)?.number;
  der.fill(0);
  if (number === undefined) throw new Error('a loaded ECDSA key has an unexpected encoding');
  try {
    return Buffer.from(ecdsa.sign(input, number, { prehash: false, lowS: false, extraEntropy: true, format }));
  } finally {
    number.fill(0);
  }
}

async function verify(
  curve: Curve,
  { publicKey: key, point }: { readonly publicKey: KeyObject; readonly point: Uint8Array },
  input: Uint8Array,
  signature: Uint8Array,
  options: SigningOptions,
): Promise<boolean> {
  const { hash, dsaEncoding, format } = ecdsaOptions(curve, input, options);
  if (format === 'der') checkForm(signature);
  if (!options.prehashed) return verifyNatively(key, input, signature, { hash, dsaEncoding, isSlow: isSlow(curve) });
  const ecdsa = await signerOfDigests(curve);
  if (isSlow(curve)) await nextTurn();
  try {
    return ecdsa.verify(signature, input, point, { prehash: false, lowS: false, format });
  } catch {
    return false; // malformed signature
  }
}

/**
 * Signatures on the larger curves take a millisecond each. They run on the thread pool or, if the input is a digest, in an event-loop turn
 * of their own.
 */
const isSlow = ({ coordinateBytes }: Curve): boolean => coordinateBytes > 32;

/** Above every number that a SHA-1 digest stands for. Another digest stands for a smaller number once in 2^64 times, or more rarely. */
const sha1NumbersEnd = 2n ** 160n;

/**
 * Returns the number that is signed in place of a digest: its leftmost bits, modulo the order (FIPS 186-5 §6.4.1). No digest has more bits
 * than the order of P-521.
 */
const signedNumber = (digest: Uint8Array, { coordinateBytes, order }: Curve): bigint =>
  BigInt(`0x${Buffer.from(digest.subarray(0, coordinateBytes)).toString('hex')}`) % order;

/**
 * Checks the options and converts them to those of the libraries. A prehashed input must have the length of some hash's digest; a SHA-1
 * digest requires the hash name `sha1`, also with zeros before it or with the order added, which is the same number. ECDSA uses only the
 * leftmost bits of its input: longer inputs with the same prefix would share a signature, and signatures of an empty input, as of zeros,
 * can be made without the key.
 * @throws TransitError `invalid_request`
 */
export function ecdsaOptions(
  curve: Curve,
  input: Uint8Array,
  { hash: name, prehashed, signatureContext, marshaling }: SigningOptions,
) {
  if (signatureContext.length > 0) {
    throw new TransitError('invalid_request', 'signature_context is for ed25519 keys');
  }
  if (prehashed && !isDigestLength(name, input.length)) {
    throw new TransitError('invalid_request', 'prehashed input has the wrong length for a digest');
  }
  if (prehashed && signedNumber(input, curve) < (name === 'sha1' ? 1n : sha1NumbersEnd)) {
    const refusal = 'prehashed input is not a digest of this hash_algorithm: it stands for too small a number';
    throw new TransitError('invalid_request', refusal);
  }
  const hash = signatureHash(name)?.openssl ?? null;
  if (hash === null && !prehashed) throw new TransitError('invalid_request', 'hash_algorithm=none requires prehashed=true');
  return marshaling === 'jws'
    ? ({ hash, dsaEncoding: 'ieee-p1363', format: 'compact' } as const)
    : ({ hash, dsaEncoding: 'der', format: 'der' } as const);
}

/** Longer than any DER signature on the largest curve. */
const derSignatureBytesMax = 256;

/**
 * Refuses a malformed signature; a well-formed signature that is wrong passes here. The verifier still checks the DER strictly.
 * @throws TransitError
 */
function checkForm(signature: Uint8Array): void {
  const first = parseFirstDer(signature.subarray(0, derSignatureBytesMax));
  const numbers = first?.element.tag === derTag.sequence ? parseDerSequence(first.element.content) : undefined;
  const isPair = numbers?.length === 2 && numbers.every(({ tag }) => tag === derTag.integer);
  if (!isPair) throw new TransitError('invalid_ciphertext', 'supplied signature is invalid');
  if (first?.bytes !== signature.length) throw new TransitError('invalid_ciphertext', 'supplied signature contains extra data');
}

const oneAs = ({ coordinateBytes }: Curve): Uint8Array =>
  Uint8Array.from({ length: coordinateBytes }, (_, at) => Number(at === coordinateBytes - 1));

function wrongAlgorithm(algorithm: Uint8Array, keyType: string, curveName: string): string {
  const isEc = Buffer.compare(algorithm.subarray(0, ecPublicKey.length), ecPublicKey) === 0;
  if (!isEc) return `invalid key type: expected ${keyType}`;
  const parameters = algorithm.subarray(ecPublicKey.length);
  const given = Object.entries(curves).find(([, { oid }]) => encodeOid(oid).equals(parameters))?.[0];
  return given === undefined ? `invalid curve: expected ${curveName}` : `invalid curve: expected ${curveName}, got ${given}`;
}

const privateHandle = (material: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.from(material.buffer, material.byteOffset, material.length), format: 'der', type: 'pkcs8' });

function notOnCurve(): never {
  throw notImported('error parsing public key: the point is not on the curve');
}
