import type { Entry, Message, ReadRequest } from '../types.ts';
import { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { CodecError } from './codec-error.ts';
import { ENTRY_HEADER_BYTES, readEntries, writeEntries } from './entries.ts';
import { decodeSnapshotMeta, encodeSnapshotMeta, positionMax } from './snapshot-meta.ts';
import { isInVersion, wireVersions } from './version.ts';

/**
 * First byte of a frame, unless its reader knows only an older version. A frame of an unknown version is refused as a whole, and its reader
 * continues.
 */
export const WIRE_VERSION = wireVersions.newest;
/** Longest accepted frame: an entry of the largest size (8 MiB) plus its envelope. */
export const frameBytesMax = 9 * 2 ** 20;

/** Second byte of a frame. A number is never reused for another type; 0 is a batch. */
const codes = {
  PreVote: 1,
  Vote: 2,
  PreVoteResp: 3,
  VoteResp: 4,
  Append: 5,
  AppendResp: 6,
  Heartbeat: 7,
  HeartbeatResp: 8,
  SnapOffer: 9,
  SnapResult: 10,
  TimeoutNow: 11,
  Removed: 12,
  ReadIndex: 13,
  ReadIndexResp: 14,
  Commit: 15,
  Confirm: 16,
  ConfirmResp: 17,
} as const satisfies Record<Message['type'], number>;

const types = new Map<number, Message['type']>(Object.entries(codes).map(([type, code]) => [code, type as Message['type']]));

/** Version, type, from, to, term, session, length of the cluster id. */
const ENVELOPE_BYTES = 27;
/** Upper bound of the fixed-width fields of any message, without its lists. */
const FIELDS_BYTES_MAX = 32;
const READ_REQUEST_BYTES = 12;

/**
 * Encodes a message as one frame: `version u8 | type u8 | from u48 | to u48 | term u48 | session u48 | cluster id | fields`, numbers
 * big-endian, entries by their bytes. Rare data is JSON with a version of its own.
 * @param version - the version agreed with the receiver; an older one leaves out what it does not know
 * @throws CodecError for a type that this version does not have, and for a message that no core sends: a number that is not an integer
 * from 0 to 2^48 - 1, entries that do not follow `prevIndex`
 */
export function encodeMessage(message: Message, version = WIRE_VERSION): Uint8Array {
  if (!isInVersion(message.type, version)) throw new CodecError(`Version ${version} has no messages of type ${message.type}.`);
  const meta = message.type === 'SnapOffer' ? encodeSnapshotMeta(message.meta) : undefined;
  const size = ENVELOPE_BYTES + message.clusterId.length + FIELDS_BYTES_MAX + listBytes(message) + (meta?.length ?? 0);
  const writer = new ByteWriter(size);
  writer.u8(version).u8(codes[message.type]);
  writer.u48(message.from).u48(message.to).u48(message.term).u48(message.session).ascii(message.clusterId);
  writeFields(writer, message);
  if (meta !== undefined) writer.raw(meta);
  return writer.written();
}

function listBytes(message: Message): number {
  if (message.type === 'ReadIndex' || message.type === 'ReadIndexResp') return message.requests.length * READ_REQUEST_BYTES;
  if (message.type !== 'Append') return 0;
  let bytes = message.entries.length * ENTRY_HEADER_BYTES;
  for (const { data } of message.entries) bytes += data.length;
  return bytes;
}

function writeFields(writer: ByteWriter, message: Message): ByteWriter {
  switch (message.type) {
    case 'PreVote':
    case 'Vote':
      return writer.u48(message.lastIndex).u48(message.lastTerm).flag(message.transfer);
    case 'PreVoteResp':
    case 'VoteResp':
      return writer.flag(message.reject).u48(message.forTerm).flag(message.longerLog).flag(message.votedElsewhere);
    case 'Append':
      writer.u48(message.prevIndex).u48(message.prevTerm).u48(message.commit).u48(message.round);
      return writeEntries(writer, message);
    case 'Commit':
      return writer.u48(message.prevIndex).u48(message.prevTerm).u48(message.commit);
    case 'AppendResp':
      writer.flag(message.ok).u48(message.round);
      if (message.ok) return writer.u48(message.match);
      return writer.u48(message.prevIndex).u48(message.hintIndex).u48(message.hintTerm);
    case 'Heartbeat':
      return writer.u48(message.commit).u48(message.round).u32(message.leaseMs);
    case 'HeartbeatResp':
      return writer.u48(message.round).flag(message.fit);
    case 'SnapOffer':
      return writer;
    case 'SnapResult':
      return writer.u48(message.index).flag(message.ok).u48(message.lastIndex);
    case 'TimeoutNow':
      return writer.u48(message.lastIndex).u48(message.lastTerm);
    case 'Removed':
      return writer.u48(message.atIndex);
    case 'ReadIndex':
      return writeRequests(writer, message.requests);
    case 'ReadIndexResp':
      return writeRequests(writer.u48(message.index).flag(message.ok), message.requests);
    case 'Confirm':
    case 'ConfirmResp':
      return writer.u48(message.request.id).u48(message.request.incarnation).u48(message.index);
  }
}

function writeRequests(writer: ByteWriter, requests: readonly ReadRequest[]): ByteWriter {
  writer.u32(requests.length);
  for (const { id, incarnation } of requests) writer.u48(id).u48(incarnation);
  return writer;
}

/**
 * Reads what `encodeMessage` wrote. Entry data are views of `frame`, which must not change afterwards.
 * @throws CodecError for any other bytes; nothing is allocated in proportion to a number that the frame merely claims
 */
export function decodeMessage(frame: Uint8Array): Message {
  if (frame.length > frameBytesMax) throw new CodecError(`The frame is longer than ${frameBytesMax} bytes.`);
  const reader = new ByteReader(frame);
  const version = readVersion(reader);
  const type = types.get(reader.u8());
  if (type === undefined || !isInVersion(type, version)) throw new CodecError('The type of the message is unknown.');
  const [from, to, term, session] = [reader.u48(), reader.u48(), reader.u48(), reader.u48()];
  if (from === 0 || to === 0) throw new CodecError('The sender or receiver of the message is 0.');
  if (term > positionMax) throw new CodecError(`The term of the message is above ${positionMax}.`);
  const message = readFields(reader, type, { from, to, term, clusterId: reader.ascii(), session });
  reader.end();
  return message;
}

/** @throws CodecError for a version that this program does not know */
export function readVersion(reader: ByteReader): number {
  const version = reader.u8();
  if (version < wireVersions.oldest || version > wireVersions.newest)
    throw new CodecError('The version of the frame is unknown.');
  return version;
}

type Envelope = Pick<Message, 'from' | 'to' | 'term' | 'clusterId' | 'session'>;

function readFields(reader: ByteReader, type: Message['type'], envelope: Envelope): Message {
  switch (type) {
    case 'PreVote':
    case 'Vote':
      return { ...envelope, type, lastIndex: reader.u48(), lastTerm: reader.u48(), transfer: reader.flag() };
    case 'PreVoteResp':
    case 'VoteResp':
      return {
        ...envelope,
        type,
        reject: reader.flag(),
        forTerm: reader.u48(),
        longerLog: reader.flag(),
        votedElsewhere: reader.flag(),
      };
    case 'Append':
      return readAppend(reader, envelope);
    case 'Commit':
      return { ...envelope, type, prevIndex: reader.u48(), prevTerm: reader.u48(), commit: reader.u48() };
    case 'AppendResp':
      return readAppendResp(reader, envelope);
    case 'Heartbeat':
      return { ...envelope, type, commit: reader.u48(), round: reader.u48(), leaseMs: reader.u32() };
    case 'HeartbeatResp':
      return { ...envelope, type, round: reader.u48(), fit: reader.flag() };
    case 'SnapOffer':
      return { ...envelope, type, meta: decodeSnapshotMeta(reader.raw(reader.left)) };
    case 'SnapResult':
      return { ...envelope, type, index: reader.u48(), ok: reader.flag(), lastIndex: reader.u48() };
    case 'TimeoutNow':
      return { ...envelope, type, lastIndex: reader.u48(), lastTerm: reader.u48() };
    case 'Removed':
      return { ...envelope, type, atIndex: reader.u48() };
    case 'ReadIndex':
      return { ...envelope, type, requests: readRequests(reader) };
    case 'ReadIndexResp':
      return { ...envelope, type, index: reader.u48(), ok: reader.flag(), requests: readRequests(reader) };
    case 'Confirm':
    case 'ConfirmResp':
      return { ...envelope, type, request: { id: reader.u48(), incarnation: reader.u48() }, index: reader.u48() };
  }
}

function readAppend(reader: ByteReader, envelope: Envelope): Message {
  const [prevIndex, prevTerm, commit, round] = [reader.u48(), reader.u48(), reader.u48(), reader.u48()];
  const entries: readonly Entry[] = readEntries(reader, { prevIndex, prevTerm, term: envelope.term });
  return { ...envelope, type: 'Append', prevIndex, prevTerm, commit, entries, round };
}

function readAppendResp(reader: ByteReader, envelope: Envelope): Message {
  const [ok, round] = [reader.flag(), reader.u48()];
  if (ok) return { ...envelope, type: 'AppendResp', ok, match: reader.u48(), round };
  return {
    ...envelope,
    type: 'AppendResp',
    ok,
    prevIndex: reader.u48(),
    hintIndex: reader.u48(),
    hintTerm: reader.u48(),
    round,
  };
}

function readRequests(reader: ByteReader): ReadRequest[] {
  const count = reader.count(READ_REQUEST_BYTES);
  const requests: ReadRequest[] = [];
  for (let i = 0; i < count; i++) requests.push({ id: reader.u48(), incarnation: reader.u48() });
  return requests;
}
