import { TransitError } from '../values/errors.ts';

const [newline, carriageReturn, padding] = [0x0a, 0x0d, 0x3d];

/**
 * Decodes standard base64 with padding (RFC 4648 §4) and skips CR and LF. Unused bits of the last character may be set, as Vault
 * and OpenBao accept them.
 * @throws TransitError `invalid_request` with the offset of the first invalid byte of the text in UTF-8
 */
export function decodeBase64(text: string): Buffer {
  const bytes = decodeAround(0, text) ?? decodeBroken(text);
  if (bytes !== undefined) return bytes;
  throw new TransitError('invalid_request', `illegal base64 data at input byte ${faultOffset(Buffer.from(text))}`);
}

/** Decodes base64url without padding (RFC 4648 §5, RFC 7515 §2); undefined for anything else. */
export const decodeBase64Url = (text: string): Buffer | undefined =>
  text.length % 4 !== 1 && /^[\w-]*$/.test(text) ? Buffer.from(text, 'base64url') : undefined;

/**
 * Decodes base64 in a text with this number of line breaks; returns undefined for any other text. Node's decoder is fast but lenient. It
 * skips line breaks and unknown characters; the length of the result reveals the latter. It also accepts the URL alphabet, and uses only
 * the low byte of characters above U+00FF; these two cases are checked separately.
 */
function decodeAround(lineBreaks: number, text: string): Buffer | undefined {
  const length = text.length - lineBreaks;
  if (length % 4 !== 0) return undefined;
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== (length / 4) * 3 - paddingIn(text)) return undefined;
  return text.includes('-') || text.includes('_') || beyondLatin1.test(text) ? undefined : bytes;
}

/** Costs nothing for a string without such characters: V8 stores it with one byte for each, and knows that nothing can match. */
const beyondLatin1 = /[\u0100-\uffff]/;

/** Decodes base64 with line breaks. They are only counted: to remove millions of them from a string would take seconds. */
function decodeBroken(text: string): Buffer | undefined {
  const encoded = Buffer.from(text, 'latin1');
  let lineBreaks = 0;
  for (let at = 0; at < encoded.length; at++) if (isLineBreak(encoded[at])) lineBreaks += 1;
  return lineBreaks === 0 ? undefined : decodeAround(lineBreaks, text);
}

/** Returns the number of `=` at the end of the text, at most two. */
function paddingIn(text: string): number {
  let padded = 0;
  for (let at = text.length - 1; at >= 0 && padded < 2; at--) {
    const code = text.charCodeAt(at);
    if (code === padding) padded += 1;
    else if (!isLineBreak(code)) break;
  }
  return padded;
}

const isLineBreak = (code: number | undefined): boolean => code === newline || code === carriageReturn;

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
    else if (!isLineBreak(byte)) return at;
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
  while (isLineBreak(encoded[at])) at += 1;
  return at;
}

/** 1 for each byte of the alphabet. A typed array keeps the check of a text of many megabytes fast. */
const alphabet = new Uint8Array(256);
for (const byte of Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')) alphabet[byte] = 1;
const isAlphabet = (byte: number | undefined): boolean => byte !== undefined && alphabet[byte] === 1;
