import type { Entry, EntryType, LogIndex, Term } from '../types.ts';
import type { ByteReader } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';
import { CodecError } from './codec-error.ts';
import { decodeConfState } from './conf-state.ts';

/** Term u48, type u8, length u32. The index is not sent: entries follow `prevIndex` without a gap. */
export const ENTRY_HEADER_BYTES = 11;

const codes = { normal: 0, noop: 1, conf: 2 } as const satisfies Record<EntryType, number>;
const types: readonly EntryType[] = ['normal', 'noop', 'conf'];

/** @throws CodecError unless the entries follow `prevIndex` one by one */
export function writeEntries(
  writer: ByteWriter,
  { prevIndex, entries }: { readonly prevIndex: LogIndex; readonly entries: readonly Entry[] },
): ByteWriter {
  writer.u32(entries.length);
  let expected = prevIndex + 1;
  for (const { term, index, type, data } of entries) {
    if (index !== expected) throw new CodecError(`Entry ${expected} is missing before entry ${index}.`);
    expected += 1;
    writer.u48(term).u8(codes[type]).u32(data.length).raw(data);
  }
  return writer;
}

/**
 * @throws CodecError for entries that no leader sends: terms that fall along the log or exceed the leader's own, and configurations that
 * cannot be read, because a node that has such an entry in its log cannot go on
 */
export function readEntries(
  reader: ByteReader,
  { prevIndex, prevTerm, term: leaderTerm }: { readonly prevIndex: LogIndex; readonly prevTerm: Term; readonly term: Term },
): Entry[] {
  const count = reader.count(ENTRY_HEADER_BYTES);
  const entries: Entry[] = [];
  let before = prevTerm;
  for (let index = prevIndex + 1; index <= prevIndex + count; index++) {
    const term = reader.u48();
    if (term < before || term > leaderTerm)
      throw new CodecError(`The term of entry ${index} is lower than the term before it or higher than the leader's.`);
    before = term;
    const type = types[reader.u8()];
    if (type === undefined) throw new CodecError(`The type of entry ${index} is unknown.`);
    const data = reader.raw(reader.u32());
    if (type === 'conf') decodeConfState(data);
    entries.push({ term, index, type, data });
  }
  return entries;
}
