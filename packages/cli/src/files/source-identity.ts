import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';

/** Steps in which file systems and kernels record times. A change within one step may leave the time unchanged. */
const timeStepMs = 2_000n;

/** Returns whether the last change of a file is long enough ago that a later change must show in its times. */
export const isSettled = ({ ctimeNs }: BigIntStats, nowMs: number): boolean =>
  BigInt(Math.floor(nowMs)) - ctimeNs / 1_000_000n > timeStepMs;

/**
 * Identifies the content of a file without reading it. A program cannot set the time of the last change of the inode, so a file with the
 * same identity has the same content. Hashed, because the header of an encrypted file is public.
 */
export const identityOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  createHash('sha256').update([dev, ino, size, mtimeNs, ctimeNs].join(' ')).digest('base64url');
