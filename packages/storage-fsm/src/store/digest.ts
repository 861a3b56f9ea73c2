import { hash } from 'node:crypto';
import type { LogIndex } from '@transitd/raft-core';

/** Sum over no records. */
export const emptyDigest = 0n;

/** Bytes of a stored digest. */
export const digestBytes = 32;

export interface DigestedRecord {
  readonly path: string;
  readonly value: Uint8Array;
  readonly revision: LogIndex;
}

/**
 * A record's share of the state digest: SHA-256 of `path length u32 | path | value length u32 | value | revision u64`, integers
 * big-endian, read as an unsigned number. The shares of all records added modulo 2^256 show a lost, doubled or changed record; they
 * do not stop an attacker, who can solve for such a sum (D. Wagner, "A Generalized Birthday Problem", 2002).
 */
export const recordDigest = (record: DigestedRecord): bigint => BigInt(`0x${hash('sha256', encoded(record), 'hex')}`);

/** The sum with one more record. */
export const addToDigest = (sum: bigint, share: bigint): bigint => BigInt.asUintN(256, sum + share);

/** The sum with one record less. */
export const removeFromDigest = (sum: bigint, share: bigint): bigint => BigInt.asUintN(256, sum - share);

/** The digest of many records: as {@link addToDigest} of each one's share, in half the time. */
export class DigestSum {
  /** The sum in parts of 16 bits, the highest first. A part is carried over at the end only: 2^37 records fit below 2^53. */
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

/** Used again for each record that fits: what is in it counts until the next one is encoded. */
const scratch = Buffer.alloc(16 * 1024);

function encoded({ path, value, revision }: DigestedRecord): Buffer {
  const most = 4 + 3 * path.length + 4 + value.length + 8; // a UTF-16 unit takes three bytes at most
  const bytes = most > scratch.length ? Buffer.allocUnsafe(most) : scratch;
  const pathLength = bytes.write(path, 4);
  bytes.writeUInt32BE(pathLength);
  let at = bytes.writeUInt32BE(value.length, 4 + pathLength);
  bytes.set(value, at);
  at = bytes.writeUInt32BE(Math.floor(revision / 2 ** 32), at + value.length);
  at = bytes.writeUInt32BE(revision % 2 ** 32, at);
  return bytes.subarray(0, at);
}
