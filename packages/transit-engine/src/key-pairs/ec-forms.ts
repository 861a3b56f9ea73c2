import { createECDH, ECDH } from 'node:crypto';
import {
  type DerElement,
  derInteger,
  derTag,
  encodeDer,
  encodeOid,
  parseDer,
  parseDerSequence,
  withoutLeadingZeros,
} from '../formats/der.ts';
import { encodePkcs8, encodeSpki, notImported } from './key-formats.ts';
import type { KeyPairBytes } from './key-pair.ts';

export type CurveName = 'P-256' | 'P-384' | 'P-521';

/** A curve of NIST SP 800-186 and its names. */
export interface Curve {
  readonly name: CurveName;
  readonly openssl: string;
  readonly oid: string;
  /** Bytes of a coordinate and of the private number. */
  readonly coordinateBytes: number;
  /** Number of points of the group that signatures use. */
  readonly order: bigint;
  /** Its name in @noble/curves, which signs and verifies digests of callers; node:crypto supports only messages for this algorithm. */
  readonly forDigests: 'p256' | 'p384' | 'p521';
  /** See `KeyPairScheme.checkCost`: OpenSSL has faster code for P-256 than for the other curves. */
  readonly pairCheckCost: number;
}

export const curves: Readonly<Record<CurveName, Curve>> = {
  'P-256': {
    name: 'P-256',
    openssl: 'prime256v1',
    oid: '1.2.840.10045.3.1.7',
    coordinateBytes: 32,
    order: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
    forDigests: 'p256',
    pairCheckCost: 0.001,
  },
  'P-384': {
    name: 'P-384',
    openssl: 'secp384r1',
    oid: '1.3.132.0.34',
    coordinateBytes: 48,
    order: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
    forDigests: 'p384',
    pairCheckCost: 0.004,
  },
  'P-521': {
    name: 'P-521',
    openssl: 'secp521r1',
    oid: '1.3.132.0.35',
    coordinateBytes: 66,
    order: BigInt(`0x1${'f'.repeat(64)}fa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409`),
    forDigests: 'p521',
    pairCheckCost: 0.01,
  },
};

/** The identifier id-ecPublicKey, which the curve's identifier follows. */
export const ecPublicKey = encodeOid('1.2.840.10045.2.1');
const uncompressed = 0x04;
/** SEC 1 §2.3.3: the two compressed forms and the uncompressed one. */
const pointForms: readonly number[] = [0x02, 0x03, uncompressed];
const one = encodeDer(derTag.integer, Uint8Array.of(1));

/**
 * Encodes both halves of a pair: PKCS#8 with the named curve and the public point, and SubjectPublicKeyInfo. @param number - absent if only
 * the public half is known
 */
export function encodeEcPair({ oid }: Curve, point: Uint8Array, number: Uint8Array | undefined): KeyPairBytes {
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
 * Encodes a pair from big-endian numbers, as other services write them, without a check that the halves belong together. Returns undefined
 * if a number is too long for its curve.
 */
export function encodeEcdsa(
  name: CurveName,
  { x, y, number }: { readonly x: Uint8Array; readonly y: Uint8Array; readonly number: Uint8Array | undefined },
): KeyPairBytes | undefined {
  const curve = curves[name];
  const [paddedX, paddedY] = [padded(x, curve), padded(y, curve)];
  const paddedNumber = number && padded(number, curve);
  if (paddedX === undefined || paddedY === undefined || (number !== undefined && paddedNumber === undefined)) return undefined;
  const pair = encodeEcPair(curve, Buffer.concat([Uint8Array.of(uncompressed), paddedX, paddedY]), paddedNumber);
  paddedNumber?.fill(0);
  number?.fill(0);
  return pair;
}

/** Pads a number to the curve's length; returns undefined if it is longer. */
function padded(magnitude: Uint8Array, { coordinateBytes }: Curve): Buffer | undefined {
  const digits = withoutLeadingZeros(magnitude);
  if (digits.length > coordinateBytes) return undefined;
  const bytes = Buffer.alloc(coordinateBytes);
  bytes.set(digits, coordinateBytes - digits.length);
  return bytes;
}

/** Parses an ECPrivateKey (RFC 5915 §3): the number at the curve's length, which the caller wipes, and the point if present. */
export function parseEcPrivateKey(der: Uint8Array, curve: Curve) {
  const sequence = parseDer(der);
  const [version, number, ...rest] = (sequence?.tag === derTag.sequence && parseDerSequence(sequence.content)) || [];
  if (version === undefined || derInteger(version)?.[0] !== 1) return undefined;
  if (number?.tag !== derTag.octetString) return undefined;
  const whole = padded(number.content, curve);
  if (whole === undefined) return undefined;
  const point = rest.find(({ tag }) => tag === derTag.explicit + 1);
  return { number: whole, ...(point && { point: bitsOf(point) }) };
}

/** Returns the content of a BIT STRING of whole bytes. For anything else the result is empty, and so not a valid point. */
function bitsOf({ content }: DerElement): Uint8Array {
  const bits = parseDer(content);
  return bits?.tag === derTag.bitString && bits.content[0] === 0 ? bits.content.subarray(1) : new Uint8Array(0);
}

/** Computes the public point. @throws TransitError `invalid_request` for zero, and for numbers not below the curve's order */
export function pointOf(curve: Curve, number: Uint8Array): Buffer {
  const pair = createECDH(curve.openssl);
  try {
    pair.setPrivateKey(number);
  } catch {
    throw notImported('the private key is out of the range of its curve');
  }
  return pair.getPublicKey();
}

/** Returns the uncompressed point; undefined for a point off the curve and for the point at infinity. */
export function uncompressedPoint({ openssl, coordinateBytes }: Curve, point: Uint8Array): Buffer | undefined {
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
