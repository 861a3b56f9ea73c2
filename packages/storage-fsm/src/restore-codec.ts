import { type ByteReader, CodecError } from '@transitd/raft-core';
import { digestBytes } from './digest.ts';
import { pathFault } from './path.ts';
import { readPath, readText } from './path-codec.ts';
import type { RestoredRecord, RestoreStep } from './restore-step.ts';
import { isName } from './spaces.ts';

/** First byte of an entry that carries a step of a restore. */
export const restoreFormat = 2;

const kinds = { stage: 1, swap: 2, abandon: 3, sweep: 4 } as const;
const countMax = 2 ** 48 - 1;

/** Names one attempt to restore: 1 to 64 letters, digits and hyphens. */
const isAttempt = (id: string): boolean => /^[0-9A-Za-z-]{1,64}$/.test(id);

/** A beginning of paths; the empty one would keep everything. */
const isPrefix = (prefix: string): boolean =>
  prefix !== '' && prefix.length <= 1024 && prefix.isWellFormed() && !/\p{Cc}/u.test(prefix);

/**
 * `format u8 | kind u8`, then by kind, integers big-endian and texts `length u16 | UTF-8`: stage `attempt | chunk u32 | records u32 |
 * { path, length u32, value }`; swap `attempt | records u48 | digest (32) | values written u48 | kept prefixes u16 | { prefix }`;
 * abandon `attempt`; sweep `names u32 | { name }`.
 * @throws TypeError when a text or count breaks its rules: a mistake of the calling code
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

/** The first byte is read already; values are views. @throws CodecError and nothing else, whatever the bytes */
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
      throw new CodecError(`restore step ${kind} is not known`);
  }
}

function texts(reader: ByteReader, count: number): string[] {
  const all: string[] = [];
  for (let left = count; left > 0; left--) all.push(readText(reader));
  return all;
}

function faultOf(step: RestoreStep): string | undefined {
  if (step.kind === 'sweep') return step.names.every(isName) ? undefined : 'a name is none that a record can have';
  if (!isAttempt(step.attempt)) return 'an attempt is named by 1 to 64 letters, digits and hyphens';
  if (step.kind === 'stage') {
    const paths = step.records.map(({ path }) => path);
    if (paths.some((path) => pathFault(path) !== undefined)) return 'a restored record has a path that is none';
    if (new Set(paths).size < paths.length) return 'a path is restored twice';
    if (!isCount(step.chunk) || step.chunk >= 2 ** 32) return 'a chunk has no number';
  }
  if (step.kind === 'swap') {
    if (!step.keep.every(isPrefix)) return 'a prefix that is kept is none';
    if (!isCount(step.records) || !isCount(step.valuesWritten)) return 'a count is no whole number';
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
