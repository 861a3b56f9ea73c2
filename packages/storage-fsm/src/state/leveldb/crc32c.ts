/** Bytes processed per step. */
const step = 4;

/**
 * The entry at `256 * zeros + byte` is the CRC of `byte` followed by `zeros` zero bytes. Castagnoli's polynomial, reflected (RFC 3720
 * §12.1).
 */
const table = new Int32Array(step * 256);
for (let byte = 0; byte < 256; byte++) {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  table[byte] = crc;
}
for (let at = 256; at < table.length; at++) {
  const before = lookUp(at - 256);
  table[at] = (before >>> 8) ^ lookUp(before & 255);
}

/**
 * Returns the CRC-32C (Castagnoli), unsigned. Processes several bytes at a time, because each start of a node reads all tables of its
 * state.
 */
export function crc32c(bytes: Uint8Array): number {
  const whole = bytes.length - (bytes.length % step);
  const at = (index: number): number => bytes[index] ?? 0;
  let crc = -1;
  for (let i = 0; i < whole; i += step) {
    const four = crc ^ (at(i) | (at(i + 1) << 8) | (at(i + 2) << 16) | (at(i + 3) << 24));
    crc =
      lookUp(768 + (four & 255)) ^ lookUp(512 + ((four >>> 8) & 255)) ^ lookUp(256 + ((four >>> 16) & 255)) ^ lookUp(four >>> 24);
  }
  for (let i = whole; i < bytes.length; i++) crc = (crc >>> 8) ^ lookUp((crc ^ at(i)) & 255);
  return ~crc >>> 0;
}

function lookUp(index: number): number {
  return table[index] ?? 0;
}
