import { TransitError } from '../values/errors.ts';

const [newline, carriageReturn, padding] = [0x0a, 0x0d, 0x3d];

/**
 * Decodes standard base64 with padding (RFC 4648 §4) and skips CR and LF. Unused bits of the last character may be set, as Vault
 * and OpenBao accept them.
 * @throws TransitError `invalid_request` with the offset of the first invalid byte of the text in UTF-8
 */
export function decodeBase64(text: string): Buffer {
  const bytes = decodeUnbroken(text) ?? decodeBroken(text);
  if (bytes !== undefined) return bytes;
  throw new TransitError('invalid_request', `illegal base64 data at input byte ${faultOffset(Buffer.from(text))}`);
}

/** Decodes base64url without padding (RFC 4648 §5, RFC 7515 §2); undefined for anything else. */
export const decodeBase64Url = (text: string): Buffer | undefined =>
  text.length % 4 !== 1 && /^[\w-]*$/.test(text) ? Buffer.from(text, 'base64url') : undefined;

/**
 * Decodes base64 without line breaks; returns undefined for any other string. Node's decoder is fast but lenient. It skips unknown
 * characters, which the length of the result reveals. It also accepts the URL alphabet, and uses only the low byte of characters above
 * U+00FF; these two cases are checked separately.
 */
function decodeUnbroken(text: string): Buffer | undefined {
  const { length } = text;
  if (length % 4 !== 0) return undefined;
  const padded = !text.endsWith('=') ? 0 : text.endsWith('==') ? 2 : 1;
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== (length / 4) * 3 - padded) return undefined;
  if (text.includes('-') || text.includes('_') || Buffer.byteLength(text) !== length) return undefined;
  return bytes;
}

/** Decodes base64 with line breaks; returns undefined if the string has no line breaks or is not base64. */
function decodeBroken(text: string): Buffer | undefined {
  const unbroken = text.replace(/[\r\n]+/g, '');
  return unbroken === text ? undefined : decodeUnbroken(unbroken);
}

/**
 * Returns the offset of the first misplaced byte of an invalid input. If the input ends inside a group of four characters, this is the
 * offset of the group's first byte.
 */
function faultOffset(encoded: Uint8Array): number {
  let inGroup = 0;
  for (let at = 0; at < encoded.length; at++) {
    const byte = encoded[at];
    if (isAlphabet(byte)) inGroup = (inGroup + 1) % 4;
    else if (byte === padding) return paddingFault(encoded, at, inGroup);
    else if (byte !== newline && byte !== carriageReturn) return at;
  }
  return encoded.length - inGroup;
}

/** Finds the first misplaced byte at or after the first `=`. @param inGroup - number of characters in the last group before that `=` */
function paddingFault(encoded: Uint8Array, at: number, inGroup: number): number {
  if (inGroup < 2) return at;
  let next = skipLineBreaks(encoded, at + 1);
  if (inGroup === 2) {
    if (next === encoded.length) return encoded.length;
    if (encoded[next] !== padding) return next - 1;
    next = skipLineBreaks(encoded, next + 1);
  }
  return next;
}

function skipLineBreaks(encoded: Uint8Array, from: number): number {
  let at = from;
  while (encoded[at] === newline || encoded[at] === carriageReturn) at += 1;
  return at;
}

/** 1 for each byte of the alphabet. A typed array keeps the check of a text of many megabytes fast. */
const alphabet = new Uint8Array(256);
for (const byte of Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')) alphabet[byte] = 1;
const isAlphabet = (byte: number | undefined): boolean => byte !== undefined && alphabet[byte] === 1;
