import { type ByteReader, CodecError } from '@transitd/raft-core';
import { pathFault } from './path.ts';

// A leading U+FEFF is kept as part of the path, so that different bytes never decode to the same path.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads `length u16 | UTF-8`. @throws CodecError */
export function readText(reader: ByteReader): string {
  const bytes = reader.raw(reader.u16());
  try {
    return utf8.decode(bytes);
  } catch (error) {
    throw new CodecError("a record's path is not UTF-8", { cause: error });
  }
}

/** Reads the path of a record. @throws CodecError */
export function readPath(reader: ByteReader): string {
  const path = readText(reader);
  const fault = pathFault(path);
  if (fault !== undefined) throw new CodecError(`a record's path ${fault}`);
  return path;
}
