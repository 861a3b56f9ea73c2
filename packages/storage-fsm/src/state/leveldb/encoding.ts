import { crc32c } from './crc32c.ts';

/** Returns the CRC as LevelDB stores it: rotated, plus an offset (util/crc32c.h). */
export const maskedCrc = (bytes: Uint8Array): number => {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
};

/**
 * Reads a varint: seven bits per byte, lowest first; the high bit is set if more bytes follow. `end` is the position after it.
 * @throws RangeError
 */
export function readVarint(bytes: Buffer, at: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let factor = 1, next = at; factor < 2 ** 49; factor *= 128, next++) {
    const byte = bytes.readUInt8(next);
    value += (byte & 127) * factor;
    if (byte < 128) return { value, end: next + 1 };
  }
  throw new RangeError('a varint is too long');
}
