import { hash } from 'node:crypto';
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
  const all = Buffer.allocUnsafe(4 + pathLength + 4 + value.length + 8);
  let at = all.writeUInt32BE(pathLength);
  at += all.write(path, at);
  at = all.writeUInt32BE(value.length, at);
  all.set(value, at);
  at = all.writeUInt32BE(Math.floor(revision / 2 ** 32), at + value.length);
  all.writeUInt32BE(revision % 2 ** 32, at);
  return BigInt(`0x${hash('sha256', all, 'hex')}`);
}

/** The sum with one more record. */
export const addToDigest = (sum: bigint, share: bigint): bigint => BigInt.asUintN(256, sum + share);

/** The sum with one record less. */
export const removeFromDigest = (sum: bigint, share: bigint): bigint => BigInt.asUintN(256, sum - share);
