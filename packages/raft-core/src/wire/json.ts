import { CodecError } from './codec-error.ts';

/** Far more than any configuration needs. Longer data is refused unread: parsing takes many times its length in memory. */
export const jsonBytesMax = 256 * 1024;

/** JSON for rare data, ASCII only (numbers, hex), so that one byte is one character. @throws CodecError above `jsonBytesMax` */
export function encodeJson(value: unknown): Uint8Array {
  const json = JSON.stringify(value);
  requireShort(json);
  return Uint8Array.from(json, (character) => character.charCodeAt(0));
}

/** @throws CodecError unless the bytes are JSON in ASCII, up to `jsonBytesMax` */
export function decodeJson(bytes: Uint8Array): unknown {
  requireShort(bytes);
  if (bytes.some((byte) => byte > 0x7f)) throw new CodecError('The JSON data is not ASCII.');
  const json = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  try {
    return JSON.parse(json);
  } catch {
    throw new CodecError('The data is not JSON.');
  }
}

/** Returns the fields of an object that has exactly these. @throws CodecError */
export function fieldsOf(value: unknown, names: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new CodecError('The data is not a JSON object.');
  const fields: Record<string, unknown> = { ...value };
  if (Object.keys(fields).sort().join() !== [...names].sort().join())
    throw new CodecError('A field of the object is missing or unknown.');
  return fields;
}

function requireShort({ length }: { readonly length: number }): void {
  if (length > jsonBytesMax) throw new CodecError(`The JSON data is longer than ${jsonBytesMax} bytes.`);
}
