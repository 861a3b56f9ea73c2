import { TransitError } from '../errors.ts';
import { decodeBase64 } from './base64.ts';

/** A `svc:v1:…` string taken apart. `payload` is base64 still: what it must hold depends on the key. */
export interface Versioned {
  readonly version: number;
  readonly payload: string;
}

/** Read besides a mount's own prefix, so that data moves here unchanged. */
const knownPrefixes = ['svc', 'vault'];
const [plus, minus, digit0, digit9] = [0x2b, 0x2d, 0x30, 0x39];
const versionMax = 2 ** 63;

/** `<prefix>:v<version>:<standard base64>`, the form of ciphertexts, of MACs and of signatures, which may have base64url instead. */
export const formatVersioned = (
  prefix: string,
  version: number,
  payload: Buffer,
  encoding: 'base64' | 'base64url' = 'base64',
): string => `${prefix}:v${version}:${payload.toString(encoding)}`;

/** Takes a ciphertext apart; version 0 is read as 1. @throws TransitError `invalid_ciphertext` */
export function parseCiphertext(text: string, ownPrefix: string): Versioned {
  const parsed = parseVersioned(text, ownPrefix);
  if (typeof parsed === 'string') throw new TransitError('invalid_ciphertext', `invalid ciphertext: ${parsed}`);
  return parsed.version === 0 ? { ...parsed, version: 1 } : parsed;
}

/** Takes `svc:v2:…` apart; `vault:` and the mount's own prefix are read as well. What is wrong with it, if something is. */
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

/** Where the version number begins, or undefined when the text has no prefix that is known. */
function afterPrefix(text: string, ownPrefix: string): number | undefined {
  if (startsWithPrefix(text, ownPrefix)) return ownPrefix.length + 2;
  for (const prefix of knownPrefixes) if (startsWithPrefix(text, prefix)) return prefix.length + 2;
  return undefined;
}

const startsWithPrefix = (text: string, prefix: string): boolean =>
  text.startsWith(prefix) && text.startsWith(':v', prefix.length);

/** A decimal integer with an optional sign, leading zeros allowed, within 64 bits; else undefined. */
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
