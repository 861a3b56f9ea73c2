import { type ByteReader, CodecError } from '@transitd/raft-core';
import { digestBytes } from './digest.ts';
import { pathFault } from './path.ts';
import { readPath, readText } from './path-codec.ts';
import { isForeignIndex } from './replication-state.ts';
import type { RestoredRecord, RestoreStep } from './restore-step.ts';
import { isName } from './spaces.ts';

/** First byte of an entry that carries a restore step. */
export const restoreFormat = 2;

const kinds = { stage: 1, swap: 2, abandon: 3, sweep: 4 } as const;
const countMax = 2 ** 48 - 1;

/** Returns whether the string can name a restore attempt: 1 to 64 letters, digits and hyphens. */
const isAttempt = (id: string): boolean => /^[0-9A-Za-z-]{1,64}$/.test(id);

/** Returns whether the string is a valid prefix of paths to keep. The empty prefix is not, because it would keep everything. */
const isPrefix = (prefix: string): boolean =>
  prefix !== '' && prefix.length <= 1024 && prefix.isWellFormed() && !/\p{Cc}/u.test(prefix);

/**
 * Encodes a step as `format u8 | kind u8` and, by kind: stage `attempt | chunk u32 | records u32 | { path, length u32, value }`;
 * swap `attempt | records u48 | digest (32) | values written u48 | kept prefixes u16 | { prefix }`; abandon `attempt`;
 * sweep `names u32 | { name }`. Integers are big-endian, strings `length u16 | UTF-8`.
 * @throws TypeError for an invalid string or count: a bug in the calling code
 */
export function encodeRestoreStep(step: RestoreStep): Buffer {
  const fault = faultOf(step);
  if (fault !== undefined) throw new TypeError(fault);
  const head = Buffer.of(restoreFormat, kinds[step.kind]);
  switch (step.kind) {
    case 'stage':
      return Buffer.concat([
        head,
        text(step.attempt),
        uint(step.chunk, 4),
        uint(step.records.length, 4),
        ...step.records.flatMap(({ path, value }) => [text(path), uint(value.length, 4), value]),
      ]);
    case 'swap':
      return Buffer.concat([
        head,
        text(step.attempt),
        uint(step.records, 6),
        Buffer.from(step.digest.toString(16).padStart(2 * digestBytes, '0'), 'hex'),
        uint(step.valuesWritten, 6),
        uint(step.keep.length, 2),
        ...step.keep.map(text),
      ]);
    case 'abandon':
      return Buffer.concat([head, text(step.attempt)]);
    case 'sweep':
      return Buffer.concat([head, uint(step.names.length, 4), ...step.names.map(text)]);
  }
}

/** Decodes a step after its first byte; values are views. @throws CodecError, and no other error, for any other bytes */
export function decodeRestoreStep(reader: ByteReader): RestoreStep {
  const step = readStep(reader);
  reader.end();
  const fault = faultOf(step);
  if (fault !== undefined) throw new CodecError(fault);
  return step;
}

function readStep(reader: ByteReader): RestoreStep {
  const kind = reader.u8();
  switch (kind) {
    case kinds.stage: {
      const [attempt, chunk] = [readText(reader), reader.u32()];
      const records: RestoredRecord[] = [];
      for (let left = reader.u32(); left > 0; left--) records.push({ path: readPath(reader), value: reader.raw(reader.u32()) });
      return { kind: 'stage', attempt, chunk, records };
    }
    case kinds.swap: {
      const [attempt, records] = [readText(reader), reader.u48()];
      const digest = BigInt(`0x${Buffer.from(reader.raw(digestBytes)).toString('hex')}`);
      const valuesWritten = reader.u48();
      return { kind: 'swap', attempt, records, digest, valuesWritten, keep: texts(reader, reader.u16()) };
    }
    case kinds.abandon:
      return { kind: 'abandon', attempt: readText(reader) };
    case kinds.sweep:
      return { kind: 'sweep', names: texts(reader, reader.u32()) };
    default:
      throw new CodecError(`unknown restore step ${kind}`);
  }
}

function texts(reader: ByteReader, count: number): string[] {
  const all: string[] = [];
  for (let left = count; left > 0; left--) all.push(readText(reader));
  return all;
}

function faultOf(step: RestoreStep): string | undefined {
  if (step.kind === 'sweep') return step.names.every(isName) ? undefined : 'a record name is invalid';
  if (!isAttempt(step.attempt)) return 'the name of an attempt must be 1 to 64 letters, digits and hyphens';
  if (step.kind === 'stage') {
    const paths = step.records.map(({ path }) => path);
    if (paths.some((path) => pathFault(path) !== undefined)) return 'a restored record has an invalid path';
    if (new Set(paths).size < paths.length) return 'a path is restored twice';
    if (!isCount(step.chunk) || step.chunk >= 2 ** 32) return 'the number of a chunk is invalid';
  }
  if (step.kind === 'swap') {
    if (!step.keep.every(isPrefix)) return 'a prefix to keep is invalid';
    if (!isCount(step.records) || !isForeignIndex(step.valuesWritten)) return 'a count is not a whole number';
  }
  return undefined;
}

const isCount = (count: number): boolean => Number.isInteger(count) && count >= 0 && count <= countMax;

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint(bytes.length, 2), bytes]);
}

function uint(value: number, width: number): Buffer {
  const out = Buffer.alloc(width);
  out.writeUIntBE(value, 0, width);
  return out;
}
