import { createPublicKey } from 'node:crypto';
import { Pkcs11Failure } from './failure.ts';
import { curves } from './token-key.ts';

/** The public half of a key as a token returns it. */
export type PublicAttributes =
  | { readonly kind: 'rsa'; readonly modulus: Uint8Array; readonly exponent: Uint8Array }
  /** CKA_EC_PARAMS and CKA_EC_POINT. */
  | { readonly kind: 'ec'; readonly parameters: Uint8Array; readonly point: Uint8Array };

const uncompressed = 0x04;

/** Encodes a public key as SubjectPublicKeyInfo in DER. @throws Pkcs11Failure `key_unsuitable` */
export function publicKeyOf(attributes: PublicAttributes): Buffer {
  try {
    const key = attributes.kind === 'rsa' ? rsaJwk(attributes) : ecJwk(attributes);
    return createPublicKey({ key, format: 'jwk' }).export({ format: 'der', type: 'spki' });
  } catch (error) {
    throw error instanceof Pkcs11Failure ? error : unsuitable('its public half cannot be decoded');
  }
}

const rsaJwk = ({ modulus, exponent }: Extract<PublicAttributes, { readonly kind: 'rsa' }>) => ({
  kty: 'RSA',
  n: base64Url(modulus),
  e: base64Url(exponent),
});

function ecJwk({ parameters, point }: Extract<PublicAttributes, { readonly kind: 'ec' }>) {
  const oid = Buffer.from(parameters).toString('hex');
  const curve = Object.values(curves).find((each) => each.oid === oid);
  if (curve === undefined) throw unsuitable('its curve is not P-256, P-384 or P-521');
  const { bytes } = curve;
  // PKCS#11 2.40 §2.3.3: the point is a DER OCTET STRING; some tokens omit the header.
  const encoded = point.subarray(point.length - (1 + 2 * bytes));
  if (encoded.length !== 1 + 2 * bytes || encoded[0] !== uncompressed) throw unsuitable('its public point cannot be decoded');
  const [x, y] = [encoded.subarray(1, 1 + bytes), encoded.subarray(1 + bytes)];
  return { kty: 'EC', crv: curve.jwk, x: base64Url(x), y: base64Url(y) };
}

const base64Url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
const unsuitable = (reason: string): Pkcs11Failure =>
  new Pkcs11Failure('key_unsuitable', `the key in the token cannot be used: ${reason}`);
