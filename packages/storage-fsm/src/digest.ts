import { createHash } from 'node:crypto';
import type { LogIndex } from '@transitd/raft-core';

/** Sum over no records. */
export const emptyDigest = 0n;

/** Bytes of a stored digest. */
export const digestBytes = 32;

/**
 * A record's share of the state digest: SHA-256 of `path length u32 | path | value length u32 | value | revision u64`, integers
 * big-endian, read as an unsigned number. The shares of all records added modulo 2^256 show a lost, doubled or changed record; they
 * do not stop an attacker, who can solve for such a sum (D. Wagner, "A Generalized Birthday Problem", 2002).
 */
export function recordDigest({ path, value, revision }: { path: string; value: Uint8Array; revision: LogIndex }): bigint {
  const pathLength = Buffer.byteLength(path);
  const head = Buffer.allocUnsafe(4 + pathLength + 4);
  head.writeUInt32BE(pathLength);
  head.write(path, 4);
  head.writeUInt32BE(value.length, 4 + pathLength);
  const tail = Buffer.allocUnsafe(8);
  tail.writeBigUInt64BE(BigInt(revision));
  return BigInt(`0x${createHash('sha256').update(head).update(value).update(tail).digest('hex')}`);
}

/** The sum with one more record. */
export const addToDigest = (sum: bigint, share: bigint): bigint => BigInt.asUintN(256, sum + share);

/** The sum with one record less. */
export const removeFromDigest = (sum: bigint, share: bigint): bigint => BigInt.asUintN(256, sum - share);
