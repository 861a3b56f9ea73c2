import { ByteReader, CodecError } from '@transitd/raft-core';
import { decodeRaise, encodeRaise, raiseFormat } from '../level/raise-codec.ts';
import { pathFault } from './path.ts';
import { readPath } from './path-codec.ts';
import { decodeReplicationStep, encodeReplicationStep, replicationFormat } from './replication-codec.ts';
import { decodeRestoreStep, encodeRestoreStep, restoreFormat } from './restore-codec.ts';
import { StoreError } from './store.ts';
import { type Command, requireOneKind, type Transaction } from './transaction.ts';
import type { Condition, Write } from './write.ts';

/** Maximum length of an encoded transaction, and so of a log entry, in bytes. */
export const transactionBytesMax = 8 * 1024 * 1024;

const formatVersion = 1;
const revisionBytes = 6; // 48 bits, as the log stores an index
const revisionMax = 2 ** 48 - 1;
const deletes = 0;
const puts = 1;

/**
 * Encodes the payload of one log entry. Each kind of command has a format of its own.
 * @throws as {@link encodeTransaction}, and as {@link requireOneKind}
 */
export function encodeCommand(command: Command): Buffer {
  requireOneKind(command);
  if ('writes' in command) return encodeTransaction(command);
  if ('raise' in command) return encodeRaise(command.raise);
  return bounded('restore' in command ? encodeRestoreStep(command.restore) : encodeReplicationStep(command.replication));
}

/**
 * Encodes a transaction, integers big-endian: `version u8 | conditions u32 | { path, revision u48 } | writes u32 | { path, kind u8, kind 1:
 * length u32, value }`, where a path is `length u16 | UTF-8`.
 * @throws StoreError `too_large` above {@link transactionBytesMax}
 * @throws TypeError for an invalid path or revision, or a path that is written twice: a bug in the calling code
 */
export function encodeTransaction({ conditions, writes }: Transaction): Buffer {
  checkTransaction({ conditions, writes });
  const bytes = encodedBytes({ conditions, writes });
  checkBytes(bytes);
  const out = Buffer.allocUnsafe(bytes);
  let at = out.writeUInt8(formatVersion);
  at = out.writeUInt32BE(conditions.length, at);
  for (const { path, revision } of conditions) {
    at = writePath(out, path, at);
    at = out.writeUIntBE(revision, at, revisionBytes);
  }
  at = out.writeUInt32BE(writes.length, at);
  for (const { path, value } of writes) {
    at = writePath(out, path, at);
    at = out.writeUInt8(value === null ? deletes : puts, at);
    if (value === null) continue;
    at = out.writeUInt32BE(value.length, at);
    out.set(value, at);
    at += value.length;
  }
  return out;
}

/**
 * Decodes a command that {@link encodeCommand} wrote; values are views of `data`.
 * @throws CodecError, and no other error, for any other bytes
 */
export function decodeCommand(data: Uint8Array): Command {
  if (data.length > transactionBytesMax) throw new CodecError('the transaction is longer than a log entry may be');
  const reader = new ByteReader(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  const version = reader.u8();
  if (version === restoreFormat) return { restore: decodeRestoreStep(reader) };
  if (version === raiseFormat) return { raise: decodeRaise(reader) };
  if (version === replicationFormat) return { replication: decodeReplicationStep(reader) };
  if (version !== formatVersion) throw new CodecError(`unknown transaction format ${version}`);

  const conditions: Condition[] = [];
  for (let left = reader.u32(); left > 0; left--) {
    conditions.push({ path: readPath(reader), revision: reader.u48() });
  }
  const writes: Write[] = [];
  for (let left = reader.u32(); left > 0; left--) {
    const path = readPath(reader);
    const kind = reader.u8();
    if (kind !== deletes && kind !== puts) throw new CodecError(`unknown write kind ${kind}`);
    writes.push({ path, value: kind === deletes ? null : reader.raw(reader.u32()) });
  }
  reader.end();
  if (writesTwice(writes)) throw new CodecError('a path is written twice');
  return { conditions, writes };
}

/** Decodes a transaction that {@link encodeTransaction} wrote. @throws as {@link decodeCommand}, also for another command */
export function decodeTransaction(data: Uint8Array): Transaction {
  const command = decodeCommand(data);
  if (!('writes' in command)) throw new CodecError('the command is not a transaction');
  return command;
}

function bounded(data: Buffer): Buffer {
  checkBytes(data.length);
  return data;
}

function checkBytes(bytes: number): void {
  if (bytes > transactionBytesMax)
    throw new StoreError('too_large', `the transaction takes ${bytes} bytes; at most ${transactionBytesMax} are allowed`);
}

function checkTransaction({ conditions, writes }: Transaction): void {
  for (const { path } of [...conditions, ...writes]) {
    const fault = pathFault(path);
    if (fault !== undefined) throw new TypeError(`a record's path ${fault}`);
  }
  for (const { revision } of conditions) {
    if (!Number.isInteger(revision) || revision < 0 || revision > revisionMax)
      throw new TypeError('a revision is not a log index');
  }
  if (writesTwice(writes)) throw new TypeError('a path is written twice');
}

/** Returns whether two writes have the same path: their order would then decide which one takes effect. */
const writesTwice = (writes: readonly Write[]): boolean => new Set(writes.map(({ path }) => path)).size < writes.length;

function encodedBytes({ conditions, writes }: Transaction): number {
  let bytes = 1 + 4 + 4;
  for (const { path } of conditions) bytes += 2 + Buffer.byteLength(path) + revisionBytes;
  for (const { path, value } of writes) bytes += 2 + Buffer.byteLength(path) + 1 + (value === null ? 0 : 4 + value.length);
  return bytes;
}

function writePath(out: Buffer, path: string, at: number): number {
  const length = out.write(path, at + 2);
  out.writeUInt16BE(length, at);
  return at + 2 + length;
}
