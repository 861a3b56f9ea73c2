import { closeBox, openBox } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';

/** One key of the keyring with its term. */
export interface TermKey {
  /** 1 and up; fits 32 bits. */
  readonly term: number;
  readonly key: Uint8Array;
}

const format = 1;
const headerBytes = 5;

/** Encrypts a value for storage: `format u8 | key term u32 big-endian | nonce | ciphertext | tag`. */
export function encryptValue({ term, key }: TermKey, path: string, plaintext: Uint8Array): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt8(format);
  header.writeUInt32BE(term, 1);
  return closeBox(key, associatedData(header, path), plaintext, header);
}

/** Returns the term that a stored value names. The value has not been authenticated yet. @throws BarrierError `barrier_corrupt` */
export function termOf(path: string, stored: Uint8Array): number {
  if (stored.length < headerBytes || stored[0] !== format) throw corruptValue(path);
  return Buffer.from(stored.buffer, stored.byteOffset, headerBytes).readUInt32BE(1);
}

/**
 * Decrypts a value that `encryptValue` encrypted for the same path under the same term.
 * @throws BarrierError `barrier_corrupt`, the same error for every difference
 */
export function decryptValue({ term, key }: TermKey, path: string, stored: Uint8Array): Buffer {
  const plaintext =
    termOf(path, stored) === term
      ? openBox(key, associatedData(stored.subarray(0, headerBytes), path), stored.subarray(headerBytes))
      : undefined;
  if (plaintext === undefined) throw corruptValue(path);
  return plaintext;
}

export const corruptValue = (path: string): BarrierError =>
  new BarrierError('barrier_corrupt', `the record ${path} was damaged, moved or written under a key that is not in the keyring`);

/** The header has a fixed length and the path comes last, so different pairs of header and path give different bytes. */
const associatedData = (header: Uint8Array, path: string): Buffer => Buffer.concat([header, Buffer.from(path, 'utf8')]);
