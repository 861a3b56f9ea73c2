import { createECDH, createPrivateKey, createPublicKey, ECDH, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { p256, p384, p521 } from '@noble/curves/nist.js';
import {
  type DerElement,
  derInteger,
  derTag,
  encodeDer,
  encodeOid,
  parseDer,
  parseDerSequence,
  withoutLeadingZeros,
} from '../der.ts';
import { TransitError } from '../errors.ts';
import { digestLengths, signatureHash } from '../hash-algorithm.ts';
import type { KeyPair, KeyPairBytes, KeyPairScheme, SigningOptions } from '../key-pair.ts';
import {
  encodePkcs8,
  encodeSpki,
  notImported,
  notPkcs8,
  notPublicKey,
  parsePkcs8,
  parseSpki,
  publicDerOf,
  publicPemOf,
} from './key-formats.ts';
import { signNatively, verifyNatively } from './native-signature.ts';

export type CurveName = 'P-256' | 'P-384' | 'P-521';

/** A curve of NIST SP 800-186 by the names that it has in different places. */
interface Curve {
  readonly name: CurveName;
  readonly openssl: string;
  readonly oid: string;
  /** Of a coordinate, and of the private number. */
  readonly coordinateBytes: number;
  /** Signs digests that callers made, which node:crypto does not take for this algorithm. */
  readonly overDigests: typeof p256;
}

const curves: Readonly<Record<CurveName, Curve>> = {
  'P-256': { name: 'P-256', openssl: 'prime256v1', oid: '1.2.840.10045.3.1.7', coordinateBytes: 32, overDigests: p256 },
  'P-384': { name: 'P-384', openssl: 'secp384r1', oid: '1.3.132.0.34', coordinateBytes: 48, overDigests: p384 },
  'P-521': { name: 'P-521', openssl: 'secp521r1', oid: '1.3.132.0.35', coordinateBytes: 66, overDigests: p521 },
};

const ecPublicKey = encodeOid('1.2.840.10045.2.1');
const uncompressed = 0x04;
/** SEC 1 §2.3.3: the two short forms, and the whole one. */
const pointForms: readonly number[] = [0x02, 0x03, uncompressed];
const one = encodeDer(derTag.integer, Uint8Array.of(1));
const generate = promisify(generateKeyPair);

/**
 * ECDSA (FIPS 186-5 §6) on one curve. Both halves are in one form, whatever form they came in: PKCS#8 with the named curve and the
 * public point, SubjectPublicKeyInfo with the point uncompressed.
 */
export function ecdsa(curveName: CurveName, keyType: string): KeyPairScheme {
  const curve = curves[curveName];
  const algorithm = Buffer.concat([ecPublicKey, encodeOid(curve.oid)]);
  const spkiOf = (point: Uint8Array): Buffer => encodeSpki(algorithm, point);

  /** From the private number; the point is computed. @throws TransitError `invalid_request` for a number out of range */
  const fromNumber = (number: Uint8Array, givenPoint?: Uint8Array): KeyPairBytes => {
    const point = pointOf(curve, number);
    if (givenPoint !== undefined && !point.equals(givenPoint)) throw notImported('key pair does not match');
    return encodePair(curve, point, number);
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
    return spkiOf(wholePoint(curve, spki.publicKey) ?? notOnCurve());
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
    transfer: {
      exportForm: 'text',
      fromPkcs8: async (der) => fromPkcs8(der),
      fromPublicPem: (pem) => fromPublicDer(publicDerOf(pem)),
      toPkcs8: (material) => Buffer.from(material),
      // The other services' exports of this kind have no final newline.
      toExport(material) {
        const pem = Buffer.from(privateHandle(material).export({ type: 'sec1', format: 'pem' }));
        return pem.subarray(0, pem.length - 1);
      },
      exportedPublicText: (publicKey) => publicPemOf(publicKey).trimEnd(),
    },
  };
}

function encodePair({ oid }: Curve, point: Uint8Array, number: Uint8Array | undefined): KeyPairBytes {
  const algorithm = Buffer.concat([ecPublicKey, encodeOid(oid)]);
  const publicKey = encodeSpki(algorithm, point);
  if (number === undefined) return { material: new Uint8Array(0), publicKey };
  const privateKey = encodeDer(
    derTag.sequence,
    one,
    encodeDer(derTag.octetString, number),
    encodeDer(derTag.explicit + 1, encodeDer(derTag.bitString, Uint8Array.of(0), point)),
  );
  const material = encodePkcs8({ algorithm, privateKey });
  privateKey.fill(0);
  return { material, publicKey };
}

/**
 * A pair from its numbers, big-endian, as other services write them; whether they belong together is not asked. Undefined for one that is longer
 * than its curve's are.
 */
export function encodeEcdsa(
  name: CurveName,
  { x, y, number }: { readonly x: Uint8Array; readonly y: Uint8Array; readonly number: Uint8Array | undefined },
): KeyPairBytes | undefined {
  const curve = curves[name];
  const [paddedX, paddedY] = [padded(x, curve), padded(y, curve)];
  const paddedNumber = number && padded(number, curve);
  if (paddedX === undefined || paddedY === undefined || (number !== undefined && paddedNumber === undefined)) return undefined;
  const pair = encodePair(curve, Buffer.concat([Uint8Array.of(uncompressed), paddedX, paddedY]), paddedNumber);
  paddedNumber?.fill(0);
  number?.fill(0);
  return pair;
}

/** At the curve's length; undefined for what is longer. */
function padded(magnitude: Uint8Array, { coordinateBytes }: Curve): Buffer | undefined {
  const digits = withoutLeadingZeros(magnitude);
  if (digits.length > coordinateBytes) return undefined;
  const bytes = Buffer.alloc(coordinateBytes);
  bytes.set(digits, coordinateBytes - digits.length);
  return bytes;
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

async function sign(curve: Curve, key: KeyObject, input: Uint8Array, options: SigningOptions): Promise<Buffer> {
  const { hash, dsaEncoding, format } = readOptions(input, options);
  if (!options.prehashed) return signNatively(hash, input, { key, dsaEncoding });
  const der = key.export({ type: 'sec1', format: 'der' });
  const number = parseEcPrivateKey(der, curve)?.number;
  der.fill(0);
  if (number === undefined) throw new Error('a key that was loaded is not in the form of its kind');
  try {
    return Buffer.from(curve.overDigests.sign(input, number, { prehash: false, lowS: false, extraEntropy: true, format }));
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
  const { hash, dsaEncoding, format } = readOptions(input, options);
  if (format === 'der') checkForm(signature);
  if (!options.prehashed) return verifyNatively(hash, input, { key, dsaEncoding }, signature);
  try {
    return curve.overDigests.verify(signature, input, point, { prehash: false, lowS: false, format });
  } catch {
    return false; // a form that no signature has
  }
}

/**
 * A digest is as long as one of the hashes makes it, whichever of them the request names: ECDSA takes its leftmost bits, so that longer
 * inputs with one beginning would share a signature, and an empty one has signatures that need no key.
 * @throws TransitError `invalid_request`
 */
function readOptions(input: Uint8Array, { hash: name, prehashed, signatureContext, marshaling }: SigningOptions) {
  if (signatureContext.length > 0) {
    throw new TransitError('invalid_request', 'signature_context is for ed25519 keys');
  }
  if (prehashed && !digestLengths.has(input.length)) {
    throw new TransitError('invalid_request', 'prehashed input is not as long as a digest');
  }
  const hash = signatureHash(name)?.openssl ?? null;
  if (hash === null && !prehashed) throw new TransitError('invalid_request', 'hash_algorithm=none requires prehashed=true');
  return marshaling === 'jws'
    ? ({ hash, dsaEncoding: 'ieee-p1363', format: 'compact' } as const)
    : ({ hash, dsaEncoding: 'der', format: 'der' } as const);
}

/** Tells a caller's mistake from a signature that is only wrong; what passes is still judged as DER by who verifies. @throws TransitError */
function checkForm(signature: Uint8Array): void {
  const [whole, ...more] = parseDerSequence(signature) ?? [];
  const numbers = whole?.tag === derTag.sequence ? parseDerSequence(whole.content) : undefined;
  const isPair = numbers?.length === 2 && numbers.every(({ tag }) => tag === derTag.integer);
  if (!isPair) throw new TransitError('invalid_ciphertext', 'supplied signature is invalid');
  if (more.length > 0) throw new TransitError('invalid_ciphertext', 'supplied signature contains extra data');
}

/** An ECPrivateKey (RFC 5915 §3): the number at the curve's length, whose user wipes it, and the point if it is there. */
function parseEcPrivateKey(der: Uint8Array, curve: Curve) {
  const sequence = parseDer(der);
  const [version, number, ...rest] = (sequence?.tag === derTag.sequence && parseDerSequence(sequence.content)) || [];
  if (version === undefined || derInteger(version)?.[0] !== 1) return undefined;
  if (number?.tag !== derTag.octetString) return undefined;
  const whole = padded(number.content, curve);
  if (whole === undefined) return undefined;
  const point = rest.find(({ tag }) => tag === derTag.explicit + 1);
  return { number: whole, ...(point && { point: bitsOf(point) }) };
}

/** The content of a BIT STRING of whole bytes; empty for anything else, which no point is. */
function bitsOf({ content }: DerElement): Uint8Array {
  const bits = parseDer(content);
  return bits?.tag === derTag.bitString && bits.content[0] === 0 ? bits.content.subarray(1) : new Uint8Array(0);
}

/** @throws TransitError `invalid_request` for zero, and for the curve's order and above */
function pointOf(curve: Curve, number: Uint8Array): Buffer {
  const pair = createECDH(curve.openssl);
  try {
    pair.setPrivateKey(number);
  } catch {
    throw notImported('the private key is out of the range of its curve');
  }
  return pair.getPublicKey();
}

const oneAs = ({ coordinateBytes }: Curve): Uint8Array =>
  Uint8Array.from({ length: coordinateBytes }, (_, at) => Number(at === coordinateBytes - 1));

function wrongAlgorithm(algorithm: Uint8Array, keyType: string, curveName: string): string {
  const isEc = Buffer.compare(algorithm.subarray(0, ecPublicKey.length), ecPublicKey) === 0;
  return isEc ? `invalid curve: expected ${curveName}` : `invalid key type: expected ${keyType}`;
}

const privateHandle = (material: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.from(material.buffer, material.byteOffset, material.length), format: 'der', type: 'pkcs8' });

/** The point uncompressed, from its short form too; undefined for what is none of the curve, its neutral element included. */
function wholePoint({ openssl, coordinateBytes }: Curve, point: Uint8Array): Buffer | undefined {
  const form = point[0] ?? 0;
  const pointBytes = 1 + (form === uncompressed ? 2 : 1) * coordinateBytes;
  if (!pointForms.includes(form) || point.length !== pointBytes) return undefined;
  try {
    const whole = ECDH.convertKey(point, openssl, undefined, undefined, 'uncompressed');
    return typeof whole === 'string' ? undefined : whole;
  } catch {
    return undefined;
  }
}

function notOnCurve(): never {
  throw notImported('error parsing public key: it is no point of its curve');
}
