import { CodecError } from '@transitd/raft-core';
import { type FeatureLevel, featureLevels } from './feature-levels.ts';

/**
 * Name of the record with the feature level. It is flushed, digested and sent in snapshots like any other record. It is not a path, so no
 * reader sees it, and a restore of a backup neither stages nor replaces it.
 */
export const levelName = '\u0001level';

const format = 1;
const recordBytes = 5;
const levelMax = 2 ** 32 - 1;

/** Returns whether a number can be a feature level. */
export const isLevel = (level: number): boolean => Number.isInteger(level) && level >= featureLevels.initial && level <= levelMax;

/** Encodes `format u8 | level u32`, big-endian. */
export function encodeLevel(level: FeatureLevel): Buffer {
  const out = Buffer.alloc(recordBytes);
  out.writeUInt8(format);
  out.writeUInt32BE(level, 1);
  return out;
}

/** Decodes the record; a state without one is at the initial level. @throws CodecError for bytes that {@link encodeLevel} does not write */
export function decodeLevel(record: Uint8Array | undefined): FeatureLevel {
  if (record === undefined) return featureLevels.initial;
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.byteLength);
  if (bytes.length !== recordBytes || bytes[0] !== format) throw new CodecError('the level record has an unknown format');
  const level = bytes.readUInt32BE(1);
  if (!isLevel(level)) throw new CodecError('the level record is malformed');
  return level;
}
