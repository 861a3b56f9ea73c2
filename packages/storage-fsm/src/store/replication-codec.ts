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

const kinds = {
  establish: 1,
  attach: 2,
  follow: 3,
  adopt: 4,
  stage: 5,
  swap: 6,
  promote: 7,
  demote: 8,
  supersede: 9,
  disable: 10,
  leave: 11,
  restore: 12,
} as const;
const kindOf: ReadonlyMap<number, string> = new Map(
  Object.entries(kinds).map(([name, number]): [number, string] => [number, name]),
);
const kindsWithWrites: ReadonlySet<string> = new Set(['follow', 'stage', 'swap', 'promote', 'leave', 'restore']);
/** The local prefixes and the epochs of a step take far less than this. */
const fieldBytesMax = 16 * 1024;

/**
 * Encodes a step as `format u8 | kind u8 | fields: length u32, JSON | writes u32 | { path: length u16, UTF-8 | revision u48 | deleted u8 |
 * not deleted: length u32, value }`, integers big-endian. The JSON holds the small fields of the step in the order of its type; in a
 * `follow` and a `restore`, `local` is the number of writes at the end that are local records.
 * @throws TypeError for a step that {@link decodeReplicationStep} refuses: a bug in the calling code
 */
export function encodeReplicationStep(step: ReplicationStep): Buffer {
  const { fields, writes } = partsOf(step);
  const fault = faultOf(step);
  if (fault !== undefined) throw new TypeError(fault);
  const json = Buffer.from(JSON.stringify(fields));
  const parts = [Buffer.of(replicationFormat, kinds[step.kind]), uint(json.length, 4), json, ...encodedWrites(writes)];
  return Buffer.concat(parts);
}

/** Decodes a step after its first byte; values are views. @throws CodecError, and no other error, for any other bytes */
export function decodeReplicationStep(reader: ByteReader): ReplicationStep {
  const kind = kindOf.get(reader.u8());
  if (kind === undefined) throw new CodecError('unknown replication step');
  const length = reader.u32();
  if (length > fieldBytesMax) throw new CodecError('the fields of a replication step are too long');
  const fields = decodeFields(reader.raw(length), 'the field section of a replication step');
  const writes = readReplicatedWrites(reader);
  reader.end();
  const step = stepOf(kind, fields, writes);
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

/** Separates the small fields of a step, as JSON, from its writes. */
function partsOf(step: ReplicationStep): { readonly fields: object; readonly writes: readonly ReplicatedWrite[] } {
  const { kind: _, ...all } = step;
  if (step.kind === 'follow')
    return { fields: { ...all, writes: undefined, local: step.local.length }, writes: [...step.writes, ...step.local] };
  if (step.kind === 'restore')
    return {
      fields: { ...all, digest: step.digest.toString(16), writes: undefined, local: step.local.length },
      writes: [...step.writes.map(unrevised), ...step.local],
    };
  if (step.kind === 'stage') return { fields: { ...all, records: undefined }, writes: step.records };
  if (step.kind === 'promote' || step.kind === 'leave')
    return { fields: { ...all, writes: undefined }, writes: step.writes.map(unrevised) };
  if (step.kind === 'swap') return { fields: { ...all, digest: step.digest.toString(16), local: undefined }, writes: step.local };
  return { fields: all, writes: [] };
}

function stepOf(kind: string, fields: JsonFields, writes: readonly ReplicatedWrite[]): ReplicationStep {
  const { digest, local } = fields;
  if (!kindsWithWrites.has(kind) && writes.length > 0) throw new CodecError('this replication step has no writes');
  const isDigested = (kind === 'swap' || kind === 'restore') && typeof digest === 'string' && /^[0-9a-f]{1,64}$/.test(digest);
  return {
    ...fields,
    ...(isDigested && { digest: BigInt(`0x${digest}`) }),
    ...writesOf(kind, writes, local),
    kind,
  } as ReplicationStep;
}

function writesOf(kind: string, writes: readonly ReplicatedWrite[], local: unknown): object {
  switch (kind) {
    case 'follow':
      return divided(writes, local);
    case 'restore': {
      const parts = divided(writes, local);
      return { ...parts, writes: ownWrites(kind, parts.writes) };
    }
    case 'stage':
      return { records: writes };
    case 'swap':
      return { local: writes };
    case 'promote':
    case 'leave':
      return { writes: ownWrites(kind, writes) };
    default:
      return {};
  }
}

/** Returns writes that get the revision of the entry. */
function ownWrites(kind: string, writes: readonly ReplicatedWrite[]): Write[] {
  if (writes.some(({ revision }) => revision !== 0))
    throw new CodecError(`a write of the replication step ${kind} has a revision`);
  return writes.map(({ path, value }) => ({ path, value }));
}

/** Separates the writes from the local records at their end. */
function divided(
  writes: readonly ReplicatedWrite[],
  local: unknown,
): Pick<ReplicationStep & { kind: 'follow' }, 'writes' | 'local'> {
  if (!isIndex(local) || local > writes.length)
    throw new CodecError('the number of local records in a replication step does not match');
  const first = writes.length - local;
  const records = writes.slice(first).flatMap(({ path, value, revision }) => (value === null ? [] : { path, value, revision }));
  if (records.length < local) throw new CodecError('a replication step deletes a local record');
  return { writes: writes.slice(0, first), local: records };
}

/** Returns why a step is invalid. The types of its fields are checked too: they may come from another node. */
function faultOf(step: ReplicationStep): string | undefined {
  const isValid = {
    establish: () =>
      step.kind === 'establish' &&
      isEpochId(step.set) &&
      isEpochId(step.id) &&
      areLocalPrefixes(step.local) &&
      isFence(step.fenceMs),
    attach: () => step.kind === 'attach' && isEpochId(step.set) && areLocalPrefixes(step.local) && isFence(step.fenceMs),
    follow: () =>
      step.kind === 'follow' &&
      isCursor(step.from) &&
      isForeignIndex(step.to) &&
      isForeignIndex(step.valuesWritten) &&
      areWrites([...step.writes, ...step.local]) &&
      areRecords(step.local),
    adopt: () => step.kind === 'adopt' && isCursor(step.from) && areEpochs(step.epochs),
    stage: () =>
      step.kind === 'stage' &&
      isAttempt(step.attempt) &&
      isIndex(step.chunk) &&
      areRecords(step.records) &&
      step.records.every(({ revision }) => isForeignIndex(revision)),
    swap: () =>
      step.kind === 'swap' &&
      isAttempt(step.attempt) &&
      isIndex(step.records) &&
      [step.valuesWritten, step.index].every(isForeignIndex) &&
      (step.restoredAt === undefined || isForeignIndex(step.restoredAt)) &&
      isDigest(step.digest) &&
      areEpochs(step.epochs) &&
      areRecords(step.local) &&
      isIndex(step.localReadAt),
    restore: () =>
      step.kind === 'restore' &&
      isEpochName(step.from) &&
      isAttempt(step.attempt) &&
      [step.records, step.localReadAt].every(isIndex) &&
      isForeignIndex(step.valuesWritten) &&
      isDigest(step.digest) &&
      areConditions(step.conditions) &&
      areWrites([...step.writes.map(unrevised), ...step.local]) &&
      areRecords(step.local),
    promote: () => step.kind === 'promote' && isCursor(step.from) && isEpochId(step.id) && areWrites(step.writes.map(unrevised)),
    leave: () => step.kind === 'leave' && isCursor(step.from) && areWrites(step.writes.map(unrevised)),
    demote: () => step.kind === 'demote' && isEpochName(step.from),
    supersede: () => step.kind === 'supersede' && isEpochName(step.by) && isForeignIndex(step.by.number),
    disable: () => true,
  }[step.kind];
  return isValid() ? undefined : `the replication step ${step.kind} is malformed`;
}

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
