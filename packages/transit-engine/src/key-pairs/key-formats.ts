import { decodeBase64 } from '../formats/base64.ts';
import { derInteger, derTag, encodeDer, parseDer, parseDerSequence } from '../formats/der.ts';
import { pemOf } from '../formats/pem.ts';
import { TransitError } from '../values/errors.ts';

/** The parts of a PKCS#8 private key of any algorithm (RFC 5958 §2), as views of the parsed bytes. */
export interface Pkcs8 {
  /** The AlgorithmIdentifier's content: object identifier and parameters, in DER. */
  readonly algorithm: Uint8Array;
  /** The private key's octets, in the format of its algorithm. */
  readonly privateKey: Uint8Array;
}

const zero = encodeDer(derTag.integer, Uint8Array.of(0));

/** Parses PKCS#8, version 0 or 1; returns undefined for anything else. */
export function parsePkcs8(der: Uint8Array): Pkcs8 | undefined {
  const whole = parseDer(der);
  if (whole?.tag !== derTag.sequence) return undefined;
  const [version, algorithm, privateKey] = parseDerSequence(whole.content) ?? [];
  const number = version && derInteger(version);
  if (number === undefined || number.length > 1 || (number[0] ?? 0) > 1) return undefined;
  if (algorithm?.tag !== derTag.sequence || privateKey?.tag !== derTag.octetString) return undefined;
  return { algorithm: algorithm.content, privateKey: privateKey.content };
}

/** Encodes a PKCS#8 private key. The caller wipes the result. */
export function encodePkcs8({ algorithm, privateKey }: Pkcs8): Buffer {
  const octets = encodeDer(derTag.octetString, privateKey);
  const der = encodeDer(derTag.sequence, zero, encodeDer(derTag.sequence, algorithm), octets);
  octets.fill(0);
  return der;
}

/** Encodes a SubjectPublicKeyInfo (RFC 5280 §4.1). */
export const encodeSpki = (algorithm: Uint8Array, publicKey: Uint8Array): Buffer =>
  encodeDer(derTag.sequence, encodeDer(derTag.sequence, algorithm), encodeDer(derTag.bitString, Uint8Array.of(0), publicKey));

/** Parses a SubjectPublicKeyInfo of any algorithm; `algorithm` as in {@link Pkcs8}. Returns undefined for anything else. */
export function parseSpki(der: Uint8Array): { readonly algorithm: Uint8Array; readonly publicKey: Uint8Array } | undefined {
  const whole = parseDer(der);
  const [algorithm, bits, ...more] = (whole?.tag === derTag.sequence && parseDerSequence(whole.content)) || [];
  if (algorithm?.tag !== derTag.sequence || bits?.tag !== derTag.bitString || more.length > 0) return undefined;
  return bits.content[0] === 0 ? { algorithm: algorithm.content, publicKey: bits.content.subarray(1) } : undefined;
}

const publicPem = /^\s*-----BEGIN PUBLIC KEY-----\r?\n([A-Za-z0-9+/=\r\n]*)-----END PUBLIC KEY-----\s*$/;
/** Longer than a key of any type. */
const publicPemLengthMax = 8192;

/** Decodes the PEM of exactly one public key (RFC 7468 §13). @throws TransitError `invalid_request` */
export function publicDerOf(pem: string): Buffer {
  const encoded = pem.length <= publicPemLengthMax ? publicPem.exec(pem)?.[1] : undefined;
  if (encoded === undefined) throw notImported('error parsing public key: not in PEM format');
  try {
    return decodeBase64(encoded);
  } catch {
    throw notImported('error parsing public key: not in PEM format');
  }
}

export const publicPemOf = (der: Uint8Array): string => pemOf({ label: 'PUBLIC KEY', der });

const notImportedPrefix = 'error importing key: ';

/** The refusal of imported key material, which it never quotes. */
export const notImported = (reason: string): TransitError => new TransitError('invalid_request', `${notImportedPrefix}${reason}`);

/** Returns the reason of a {@link notImported} refusal, for use in another refusal. */
export const reasonOf = ({ message }: TransitError): string =>
  message.startsWith(notImportedPrefix) ? message.slice(notImportedPrefix.length) : message;

export const notPkcs8 = (): TransitError => notImported('error parsing asymmetric key: it is not PKCS#8 in DER');
export const notPublicKey = (): TransitError => notImported('error parsing public key: it is not a key of this kind');
