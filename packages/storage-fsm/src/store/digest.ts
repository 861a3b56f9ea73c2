import { hash } from 'node:crypto';
import type { LogIndex } from '@transitd/raft-core';

/** The digest of a state without records. */
export const emptyDigest = 0n;

/** Length of a stored digest. */
export const digestBytes = 32;

export interface DigestedRecord {
  readonly path: string;
  readonly value: Uint8Array;
  readonly revision: LogIndex;
}

/**
 * Returns a record's share of the state digest: SHA-256 of `path length u32 | path | value length u32 | value | revision u64`, integers
 * big-endian, as an unsigned number. The state digest is the sum of all shares modulo 2^256. It reveals lost, duplicated and changed
 * records, but does not stop an attacker, who can construct records with the same sum (D. Wagner, "A Generalized Birthday Problem", 2002).
 */
export const recordDigest = (record: DigestedRecord): bigint => BigInt(`0x${hash('sha256', encoded(record), 'hex')}`);

/** Returns the digest after a record was added. */
export const addToDigest = (sum: bigint, share: bigint): bigint => BigInt.asUintN(256, sum + share);

/** Returns the digest after a record was removed. */
export const removeFromDigest = (sum: bigint, share: bigint): bigint => BigInt.asUintN(256, sum - share);

/** Computes the digest of many records, in half the time of calling {@link addToDigest} for each record. */
export class DigestSum {
  /** The sum in parts of 16 bits, the highest first. Carries are propagated only at the end: the parts of 2^37 records fit below 2^53. */
  readonly #parts = new Float64Array(digestBytes / 2);

  add(record: DigestedRecord): void {
    const share = hash('sha256', encoded(record), 'binary');
    for (let i = 0; i < this.#parts.length; i++)
      this.#parts[i] = (this.#parts[i] ?? 0) + share.charCodeAt(2 * i) * 256 + share.charCodeAt(2 * i + 1);
  }

  get digest(): bigint {
    return this.#parts.reduce((sum, part) => addToDigest(sum << 16n, BigInt(part)), emptyDigest);
  }
}

/** A buffer reused for every record that fits; its content is valid until the next record is encoded. */
const scratch = Buffer.alloc(16 * 1024);

function encoded({ path, value, revision }: DigestedRecord): Buffer {
  const most = 4 + 3 * path.length + 4 + value.length + 8; // a UTF-16 code unit takes at most three bytes
  const bytes = most > scratch.length ? Buffer.allocUnsafe(most) : scratch;
  const pathLength = bytes.write(path, 4);
  bytes.writeUInt32BE(pathLength);
  let at = bytes.writeUInt32BE(value.length, 4 + pathLength);
  bytes.set(value, at);
  at = bytes.writeUInt32BE(Math.floor(revision / 2 ** 32), at + value.length);
  at = bytes.writeUInt32BE(revision % 2 ** 32, at);
  return bytes.subarray(0, at);
}
