import { type ByteReader, CodecError } from '@transitd/raft-core';
import type { FeatureLevel } from './feature-levels.ts';
import { isLevel } from './level-record.ts';

/** First byte of an entry that raises the feature level. */
export const raiseFormat = 3;

/**
 * Encodes `format u8 | level u32`, big-endian. This format never changes: every release must recognize a raise, even one that it cannot
 * apply.
 */
export function encodeRaise(level: FeatureLevel): Buffer {
  if (!isLevel(level)) throw new TypeError(`${level} is not a feature level`);
  const out = Buffer.alloc(5);
  out.writeUInt8(raiseFormat);
  out.writeUInt32BE(level, 1);
  return out;
}

/** Decodes a raise after its first byte. @throws CodecError, and no other error, for any other bytes */
export function decodeRaise(reader: ByteReader): FeatureLevel {
  const level = reader.u32();
  reader.end();
  if (!isLevel(level)) throw new CodecError('a raise names no feature level');
  return level;
}
