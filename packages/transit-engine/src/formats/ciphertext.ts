import { TransitError } from '../values/errors.ts';
import { decodeBase64 } from './base64.ts';

/** The parts of a `svc:v1:…` string. `payload` is still base64, because its content depends on the key. */
export interface Versioned {
  readonly version: number;
  readonly payload: string;
}

/** Prefixes that every mount accepts besides its own, so that data of other services needs no conversion. */
const knownPrefixes = ['svc', 'vault'];
const [plus, minus, digit0, digit9] = [0x2b, 0x2d, 0x30, 0x39];
const versionMax = 2 ** 63;

/** Returns the part of a ciphertext, MAC or signature before its base64: `<prefix>:v<version>:`. */
export const versionedHead = (prefix: string, version: number): string => `${prefix}:v${version}:`;

/** Formats a ciphertext, MAC or signature: `<prefix>:v<version>:<base64>`. JWS signatures use base64url. */
export const formatVersioned = (
  prefix: string,
  version: number,
  payload: Buffer,
  encoding: 'base64' | 'base64url' = 'base64',
): string => versionedHead(prefix, version) + payload.toString(encoding);

/** Parses a ciphertext. Version 0 means 1. @throws TransitError `invalid_ciphertext` */
export function parseCiphertext(text: string, ownPrefix: string): Versioned {
  const parsed = parseVersioned(text, ownPrefix);
  if (typeof parsed === 'string') throw new TransitError('invalid_ciphertext', `invalid ciphertext: ${parsed}`);
  return parsed.version === 0 ? { ...parsed, version: 1 } : parsed;
}

/** Parses a `svc:v2:…` string; `vault:` and the mount's own prefix are accepted too. Returns the error if the string is invalid. */
export function parseVersioned(
  text: string,
  ownPrefix: string,
): Versioned | 'no prefix' | 'wrong number of fields' | 'version number could not be decoded' {
  const versionAt = afterPrefix(text, ownPrefix);
  if (versionAt === undefined) return 'no prefix';
  const colon = text.indexOf(':', versionAt);
  if (colon === -1) return 'wrong number of fields';
  const version = parseInteger(text, versionAt, colon);
  if (version === undefined) return 'version number could not be decoded';
  return { version, payload: text.slice(colon + 1) };
}

/** @throws TransitError `invalid_ciphertext` */
export function decodePayload(payload: string): Buffer {
  try {
    return decodeBase64(payload);
  } catch (error) {
    throw new TransitError('invalid_ciphertext', 'invalid ciphertext: could not decode base64', { cause: error });
  }
}

/** Returns the index of the version number, or undefined for an unknown prefix. */
function afterPrefix(text: string, ownPrefix: string): number | undefined {
  if (startsWithPrefix(text, ownPrefix)) return ownPrefix.length + 2;
  for (const prefix of knownPrefixes) if (startsWithPrefix(text, prefix)) return prefix.length + 2;
  return undefined;
}

const startsWithPrefix = (text: string, prefix: string): boolean =>
  text.startsWith(prefix) && text.startsWith(':v', prefix.length);

/** Parses a decimal integer of up to 64 bits with an optional sign; leading zeros are allowed. Returns undefined for anything else. */
function parseInteger(text: string, from: number, to: number): number | undefined {
  const sign = text.charCodeAt(from);
  const digitsAt = sign === plus || sign === minus ? from + 1 : from;
  if (digitsAt >= to) return undefined;
  let value = 0;
  for (let at = digitsAt; at < to; at++) {
    const digit = text.charCodeAt(at);
    if (digit < digit0 || digit > digit9) return undefined;
    value = value * 10 + digit - digit0;
  }
  if (value >= versionMax) return undefined;
  return sign === minus ? -value : value;
}
