import { ByteReader, CodecError } from '@transitd/raft-core';
import {
  decodeFields,
  encodedWrites,
  epochsFault,
  hasFields,
  isEpochId,
  isForeignIndex,
  isIndex,
  type JsonFields,
  type ReplicatedWrite,
  readReplicatedWrites,
} from '@transitd/storage-fsm';
import {
  addressCharactersMax,
  addressesMax,
  authoritiesMax,
  authorityCharactersMax,
  type Frame,
  type HelloRefusal,
  rootKeyBytes,
} from './frame.ts';

/**
 * Longest frame, in bytes: the outcome of the largest transaction, and its fields. A receiver closes the connection if a frame is longer.
 */
export const frameBytesMax = 9 * 1024 * 1024;

const version = 1;
const fieldBytesMax = 16 * 1024;
const digestPattern = /^[0-9a-f]{1,64}$/;

/**
 * Encodes a frame as `version u8 | fields: length u32, JSON | writes`, integers big-endian; the writes are encoded as in a replication
 * step. The transport carries the length of the frame.
 */
export function encodeFrame(frame: Frame): Buffer {
  const writes = writesOf(frame);
  const isOutside = (key: string, value: unknown) => key === 'writes' || key === 'rootKey' || isRecords(key, value);
  const fields = Buffer.from(JSON.stringify(frame, (key, value) => (isOutside(key, value) ? undefined : plain(value))));
  const head = Buffer.alloc(5);
  head.writeUInt8(version);
  head.writeUInt32BE(fields.length, 1);
  return Buffer.concat([head, fields, ...encodedWrites(writes)]);
}

/** Returns the bytes of a frame that are not in its fields. A root key is not in the fields, because a string could not be wiped. */
function writesOf(frame: Frame): readonly ReplicatedWrite[] {
  if (frame.kind === 'key') return [{ path: rootKeyName, value: frame.rootKey, revision: 0 }];
  if (frame.kind === 'records') return frame.records;
  return 'writes' in frame ? frame.writes : [];
}

const rootKeyName = 'root-key';

/** Decodes a frame; values are views of `bytes`. @throws CodecError, and no other error, for any other bytes */
export function decodeFrame(bytes: Uint8Array): Frame {
  if (bytes.length > frameBytesMax) throw new CodecError('the frame is too long');
  const reader = new ByteReader(bytes);
  if (reader.u8() !== version) throw new CodecError('unknown version of the replication stream');
  const length = reader.u32();
  if (length > fieldBytesMax) throw new CodecError('the fields of a frame are too long');
  const fields = decodeFields(reader.raw(length), 'the field section of a frame');
  const writes = readReplicatedWrites(reader);
  reader.end();
  return frameOf(fields, writes);
}

function frameOf(fields: JsonFields, writes: readonly ReplicatedWrite[]): Frame {
  const { kind } = fields;
  const check = typeof kind === 'string' && Object.hasOwn(checks, kind) ? checks[kind as Frame['kind']] : undefined;
  if (check === undefined || !check(fields)) throw new CodecError('a frame of the replication stream is malformed');
  if (kind === 'outcome') return { ...fields, writes } as unknown as Frame;
  if (kind === 'records') {
    if (writes.some(({ value }) => value === null)) throw new CodecError('a state holds no deleted records');
    return { ...fields, records: writes } as unknown as Frame;
  }
  if (kind === 'key') {
    const [write, ...others] = writes;
    if (write?.path !== rootKeyName || write.value?.length !== rootKeyBytes || others.length > 0)
      throw new CodecError('a frame of the replication stream has no root key');
    return { kind, rootKey: write.value };
  }
  if (writes.length > 0) throw new CodecError('this frame has no records');
  const { digest } = fields;
  return (typeof digest === 'string' ? { ...fields, digest: BigInt(`0x${digest}`) } : fields) as unknown as Frame;
}

const checks: Readonly<Record<Frame['kind'], (fields: JsonFields) => boolean>> = {
  hello: ({ set, cursor, wantsWholeState, level, proof }) =>
    isId(set) &&
    (cursor === undefined || isCursor(cursor)) &&
    typeof wantsWholeState === 'boolean' &&
    isIndex(level) &&
    level > 0 &&
    isProof(proof),
  welcome: ({ epochs }) => areEpochs(epochs),
  state: ({ attempt, epochs, index, valuesWritten, restoredAt }) =>
    isAttempt(attempt) && areEpochs(epochs) && isForeignIndex(index) && isForeignIndex(valuesWritten) && isRestore(restoredAt),
  records: ({ attempt, chunk }) => isAttempt(attempt) && isIndex(chunk),
  staged: ({ attempt, chunk }) => isAttempt(attempt) && isIndex(chunk),
  end: ({ attempt, records, digest }) => isAttempt(attempt) && isIndex(records) && isDigest(digest),
  outcome: ({ epoch, from, to, valuesWritten }) =>
    isEpochName(epoch) && isIndex(from) && isForeignIndex(to) && from < to && isForeignIndex(valuesWritten),
  checkpoint: ({ at, digest }) => isCursor(at) && isDigest(digest),
  heartbeat: ({ at, sentMs, demoted, restoredAt }) =>
    isCursor(at) && isTime(sentMs) && typeof demoted === 'boolean' && isRestore(restoredAt),
  ack: ({ at, echoMs }) => (at === undefined || isCursor(at)) && (echoMs === undefined || isTime(echoMs)),
  nodes: ({ addresses, authorities }) =>
    areTexts(addresses, addressesMax, addressCharactersMax) && areTexts(authorities, authoritiesMax, authorityCharactersMax),
  key: () => true,
  announce: ({ set, epoch, proof }) => isId(set) && isEpochName(epoch) && isProof(proof),
  refusal: ({ reason }) => typeof reason === 'string' && Object.hasOwn(refusals, reason),
};

const refusals: Readonly<Record<HelloRefusal, true>> = {
  other_set: true,
  not_primary: true,
  superseded: true,
  level: true,
  unproven: true,
};

const isId = (value: unknown): boolean => typeof value === 'string' && isEpochId(value);
const isTime = (value: unknown): boolean => Number.isFinite(value);
const areTexts = (value: unknown, max: number, charactersMax: number): boolean =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= max &&
  value.every((one) => typeof one === 'string' && one.length > 0 && one.length <= charactersMax);
const isRestore = (value: unknown): boolean => value === undefined || isForeignIndex(value);
const isDigest = (value: unknown): boolean => typeof value === 'string' && digestPattern.test(value);
const isAttempt = (value: unknown): boolean => typeof value === 'string' && /^[0-9A-Za-z-]{1,64}$/.test(value);
const isEpochName = (value: unknown): boolean =>
  hasFields(value) && isForeignIndex(value['number']) && value['number'] > 0 && isId(value['id']);
const isCursor = (value: unknown): boolean => isEpochName(value) && isForeignIndex((value as JsonFields)['index']);
const isProof = (value: unknown): boolean => value === undefined || (typeof value === 'string' && /^[0-9a-f]{64}$/.test(value));
const areEpochs = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((epoch) => isEpochName(epoch) && isForeignIndex(epoch['start'])) &&
  epochsFault(value) === undefined;

/** The list of records is left out of the fields, because another frame has a field of the same name for their number. */
const isRecords = (key: string, value: unknown): boolean => key === 'records' && Array.isArray(value);
const plain = (value: unknown): unknown => (typeof value === 'bigint' ? value.toString(16) : value);
