import { type ByteReader, CodecError } from '@transitd/raft-core';
import { digestBytes } from './digest.ts';
import { decodeFields, type JsonFields } from './json-object.ts';
import { pathFault } from './path.ts';
import { readPath } from './path-codec.ts';
import {
  areLocalPrefixes,
  type Cursor,
  type Epoch,
  type EpochName,
  epochsFault,
  isEpochId,
  isFence,
  isForeignIndex,
  isIndex,
} from './replication-state.ts';
import type { ReplicatedRecord, ReplicatedWrite, ReplicationStep } from './replication-step.ts';
import type { Condition, Write } from './write.ts';

/** First byte of an entry that carries a replication step. */
export const replicationFormat = 4;

type Step<K> = Extract<ReplicationStep, { readonly kind: K }>;

/** How a kind of step is encoded and checked. The fields and writes of a step are as {@link encodeReplicationStep} describes them. */
interface Kind<S extends ReplicationStep> {
  readonly number: number;
  /** The types of fields are checked too: they may come from another node. */
  isValid(step: S): boolean;
  /** Returns the writes of a step, and the fields in place of its members. Absent if it has no writes. */
  split?(step: S): { readonly writes: readonly ReplicatedWrite[]; readonly fields: object };
  /** Returns the members of a step that its fields do not have as they are. @throws CodecError */
  join?(writes: readonly ReplicatedWrite[], fields: JsonFields): object;
}

/** Steps whose writes get the revision of the entry. */
const withOwnWrites = {
  split: ({ writes }: Step<'promote' | 'leave'>) => ({ writes: writes.map(unrevised), fields: { writes: undefined } }),
  join: (writes: readonly ReplicatedWrite[]) => ({ writes: ownWrites(writes) }),
};

const kinds: { readonly [K in ReplicationStep['kind']]: Kind<Step<K>> } = {
  establish: {
    number: 1,
    isValid: ({ set, id, local, fenceMs }) => [set, id].every(isEpochId) && areLocalPrefixes(local) && isFence(fenceMs),
  },
  attach: {
    number: 2,
    isValid: ({ set, local, fenceMs }) => isEpochId(set) && areLocalPrefixes(local) && isFence(fenceMs),
  },
  follow: {
    number: 3,
    isValid: ({ from, to, valuesWritten, writes, local }) =>
      isCursor(from) && [to, valuesWritten].every(isForeignIndex) && areWrites([...writes, ...local]) && areRecords(local),
    split: ({ writes, local }) => ({ writes: [...writes, ...local], fields: { writes: undefined, local: local.length } }),
    join: divided,
  },
  adopt: { number: 4, isValid: ({ from, epochs }) => isCursor(from) && areEpochs(epochs) },
  stage: {
    number: 5,
    isValid: ({ attempt, chunk, records }) =>
      isAttempt(attempt) && isIndex(chunk) && areRecords(records) && records.every(({ revision }) => isForeignIndex(revision)),
    split: ({ records }) => ({ writes: records, fields: { records: undefined } }),
    join: (records) => ({ records }),
  },
  swap: {
    number: 6,
    isValid: ({ attempt, records, valuesWritten, index, restoredAt = 0, digest, epochs, local, localReadAt }) =>
      isAttempt(attempt) &&
      [records, localReadAt].every(isIndex) &&
      [valuesWritten, index, restoredAt].every(isForeignIndex) &&
      isDigest(digest) &&
      areEpochs(epochs) &&
      areRecords(local),
    split: ({ local, digest }) => ({ writes: local, fields: { digest: digest.toString(16), local: undefined } }),
    join: (local, { digest }) => ({ digest: digestIn(digest), local }),
  },
  promote: {
    number: 7,
    isValid: ({ from, id, writes }) => isCursor(from) && isEpochId(id) && areWrites(writes.map(unrevised)),
    ...withOwnWrites,
  },
  demote: { number: 8, isValid: ({ from }) => isEpochName(from) },
  supersede: { number: 9, isValid: ({ by }) => isEpochName(by) && isForeignIndex(by.number) },
  disable: { number: 10, isValid: () => true },
  leave: {
    number: 11,
    isValid: ({ from, writes }) => isCursor(from) && areWrites(writes.map(unrevised)),
    ...withOwnWrites,
  },
  restore: {
    number: 12,
    isValid: ({ from, attempt, records, localReadAt, valuesWritten, digest, conditions, writes, local }) =>
      isEpochName(from) &&
      isAttempt(attempt) &&
      [records, localReadAt].every(isIndex) &&
      isForeignIndex(valuesWritten) &&
      isDigest(digest) &&
      areConditions(conditions) &&
      areWrites([...writes.map(unrevised), ...local]) &&
      areRecords(local),
    split: ({ writes, local, digest }) => ({
      writes: [...writes.map(unrevised), ...local],
      fields: { digest: digest.toString(16), writes: undefined, local: local.length },
    }),
    join: (all, fields) => {
      const { writes, local } = divided(all, fields);
      return { digest: digestIn(fields['digest']), writes: ownWrites(writes), local };
    },
  },
};

const kindOf = (step: ReplicationStep): Kind<ReplicationStep> => kinds[step.kind];
const names = Object.keys(kinds) as ReplicationStep['kind'][];
/** The local prefixes and the epochs of a step take far less than this. */
const fieldBytesMax = 16 * 1024;

/**
 * Encodes a step as `format u8 | kind u8 | fields: length u32, JSON | writes u32 | { path: length u16, UTF-8 | revision u48 | deleted u8 |
 * not deleted: length u32, value }`, integers big-endian. The JSON holds the small fields of the step in the order of its type; in a
 * `follow` and a `restore`, `local` is the number of writes at the end that are local records.
 * @throws TypeError for a step that {@link decodeReplicationStep} refuses: a bug in the calling code
 */
export function encodeReplicationStep(step: ReplicationStep): Buffer {
  const fault = faultOf(step);
  if (fault !== undefined) throw new TypeError(fault);
  const { kind: _, ...members } = step;
  const { number, split } = kindOf(step);
  const { writes, fields } = split?.(step) ?? { writes: [], fields: {} };
  const json = Buffer.from(JSON.stringify({ ...members, ...fields }));
  return Buffer.concat([Buffer.of(replicationFormat, number), uint(json.length, 4), json, ...encodedWrites(writes)]);
}

/** Decodes a step after its first byte; values are views. @throws CodecError, and no other error, for any other bytes */
export function decodeReplicationStep(reader: ByteReader): ReplicationStep {
  const number = reader.u8();
  const kind = names.find((name) => kinds[name].number === number);
  if (kind === undefined) throw new CodecError('unknown replication step');
  const length = reader.u32();
  if (length > fieldBytesMax) throw new CodecError('the fields of a replication step are too long');
  const fields = decodeFields(reader.raw(length), 'the field section of a replication step');
  const writes = readReplicatedWrites(reader);
  reader.end();
  const { join } = kinds[kind];
  if (join === undefined && writes.length > 0) throw new CodecError('this replication step has no writes');
  const step = { ...fields, ...join?.(writes, fields), kind } as ReplicationStep;
  const fault = faultOf(step);
  if (fault !== undefined) throw new CodecError(fault);
  return step;
}

/** Encodes replicated writes as {@link encodeReplicationStep} describes them, in parts. */
export function encodedWrites(writes: readonly ReplicatedWrite[]): Uint8Array[] {
  const parts: Uint8Array[] = [uint(writes.length, 4)];
  for (const { path, value, revision } of writes) {
    const name = Buffer.from(path);
    parts.push(uint(name.length, 2), name, uint(revision, 6), uint(value === null ? 1 : 0, 1));
    if (value !== null) parts.push(uint(value.length, 4), value);
  }
  return parts;
}

/** Reads what {@link encodedWrites} wrote; values are views. @throws CodecError */
export function readReplicatedWrites(reader: ByteReader): ReplicatedWrite[] {
  const writes: ReplicatedWrite[] = [];
  for (let left = reader.count(2 + 1 + 6 + 1); left > 0; left--) {
    const [path, revision, isDeleted] = [readPath(reader), reader.u48(), reader.flag()];
    writes.push({ path, value: isDeleted ? null : reader.raw(reader.u32()), revision });
  }
  if (new Set(writes.map(({ path }) => path)).size < writes.length) throw new CodecError('a path is replicated twice');
  return writes;
}

/** Returns writes that get the revision of the entry. */
function ownWrites(writes: readonly ReplicatedWrite[]): Write[] {
  if (writes.some(({ revision }) => revision !== 0)) throw new CodecError('a write of this replication step has a revision');
  return writes.map(({ path, value }) => ({ path, value }));
}

/** Separates the writes from the local records at their end. */
function divided(writes: readonly ReplicatedWrite[], { local }: JsonFields): Pick<Step<'follow'>, 'writes' | 'local'> {
  if (!isIndex(local) || local > writes.length)
    throw new CodecError('the number of local records in a replication step does not match');
  const first = writes.length - local;
  const records = writes.slice(first).flatMap(({ path, value, revision }) => (value === null ? [] : { path, value, revision }));
  if (records.length < local) throw new CodecError('a replication step deletes a local record');
  return { writes: writes.slice(0, first), local: records };
}

/** Returns the digest in the fields of a step; undefined for none. */
const digestIn = (text: unknown): bigint | undefined =>
  typeof text === 'string' && /^[0-9a-f]{1,64}$/.test(text) ? BigInt(`0x${text}`) : undefined;

const faultOf = (step: ReplicationStep): string | undefined =>
  kindOf(step).isValid(step) ? undefined : `the replication step ${step.kind} is malformed`;

const unrevised = (write: Write): ReplicatedWrite => ({ ...write, revision: 0 });
const isDigest = (digest: unknown): boolean =>
  typeof digest === 'bigint' && digest >= 0n && digest < 1n << BigInt(8 * digestBytes);
const areConditions = (conditions: readonly Condition[]): boolean =>
  Array.isArray(conditions) &&
  conditions.every((one) => typeof one?.path === 'string' && pathFault(one.path) === undefined && isIndex(one.revision));
const isAttempt = (id: unknown): boolean => typeof id === 'string' && /^[0-9A-Za-z-]{1,64}$/.test(id);
const isId = (id: unknown): boolean => typeof id === 'string' && isEpochId(id);
const isEpochName = (name: EpochName): boolean =>
  typeof name === 'object' && name !== null && isIndex(name.number) && name.number > 0 && isId(name.id);
const isCursor = (cursor: Cursor): boolean => isEpochName(cursor) && isIndex(cursor.index);
/** Returns whether these are the epochs of another cluster. */
const areEpochs = (epochs: readonly Epoch[]): boolean =>
  Array.isArray(epochs) &&
  epochs.length > 0 &&
  epochs.every((epoch) => isEpochName(epoch) && isForeignIndex(epoch.number) && isForeignIndex(epoch.start)) &&
  epochsFault(epochs) === undefined;
const areWrites = (writes: readonly ReplicatedWrite[]): boolean =>
  new Set(writes.map(({ path }) => path)).size === writes.length &&
  writes.every(({ path, revision }) => pathFault(path) === undefined && isIndex(revision));
const areRecords = (records: readonly ReplicatedRecord[]): boolean =>
  areWrites(records) && records.every(({ value }) => value !== null);

function uint(value: number, width: number): Buffer {
  const out = Buffer.alloc(width);
  out.writeUIntBE(value, 0, width);
  return out;
}
