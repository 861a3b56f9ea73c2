import { TransitError } from '../errors.ts';

const [newline, carriageReturn, padding] = [0x0a, 0x0d, 0x3d];

/**
 * Decodes standard base64 with padding (RFC 4648 §4); CR and LF are skipped. Unused bits of the last character may be set, as
 * in the services whose clients come here.
 * @throws TransitError `invalid_request`, naming the offset of the first byte at fault in the text as UTF-8
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
 * The bytes of a text without line breaks, or undefined when it has some or is not base64. Node's decoder is fast but lenient:
 * it leaves out what it does not know, which shows in the length; it knows the URL alphabet, and takes the low byte of a
 * character above U+00FF, which are looked for.
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

/** The bytes of a text with line breaks, or undefined when it has none or is not base64. */
function decodeBroken(text: string): Buffer | undefined {
  const unbroken = text.replace(/[\r\n]+/g, '');
  return unbroken === text ? undefined : decodeUnbroken(unbroken);
}

/**
 * Offset of the first byte that cannot stand where it is, in an input that has one. An input that ends inside a group of four is
 * at fault where that group began.
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

/** Checks everything from the first `=` on, which stands at `at` behind `inGroup` characters of its group. */
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

/** 1 for each byte of the alphabet; a typed array, because a text of many megabytes is looked up in it byte by byte. */
const alphabet = new Uint8Array(256);
for (const byte of Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')) alphabet[byte] = 1;
const isAlphabet = (byte: number | undefined): boolean => byte !== undefined && alphabet[byte] === 1;
