import { maskedCrc, readVarint } from './encoding.ts';

const blockBytes = 32 * 1024;
const headerBytes = 7; // masked CRC32C u32, length u16, type u8
const first = 2;
const full = 1;
const last = 4;

/**
 * Returns the numbers of the tables that a database's MANIFEST lists (LevelDB's doc/impl.md, doc/log_format.md, db/version_edit.cc).
 * Reading ends at the first malformed record: LevelDB checks the MANIFEST itself before it reads any table.
 */
export function tablesInManifest(manifest: Buffer): ReadonlySet<number> {
  const live = new Set<number>();
  try {
    for (const edit of records(manifest)) applyEdit(edit, live);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return live;
}

/** Yields the records of a file in LevelDB's log format, which splits them into fragments that never cross a block. @throws RangeError */
function* records(file: Buffer): Generator<Buffer> {
  let fragments: Buffer[] = [];
  for (let at = 0; at + headerBytes <= file.length; ) {
    const blockLeft = blockBytes - (at % blockBytes);
    if (blockLeft < headerBytes) {
      at += blockLeft;
      continue;
    }
    const end = at + headerBytes + file.readUInt16LE(at + 4);
    const type = file.readUInt8(at + 6);
    if (end > file.length || maskedCrc(file.subarray(at + 6, end)) !== file.readUInt32LE(at)) return;
    if (type === full || type === first) fragments = [];
    fragments.push(file.subarray(at + headerBytes, end));
    if (type === full || type === last) yield Buffer.concat(fragments);
    at = end;
  }
}

/** Applies a version edit, a list of tagged fields: adds and removes tables, skips all other fields. @throws RangeError */
function applyEdit(edit: Buffer, live: Set<number>): void {
  let at = 0;
  const varint = (): number => {
    const { value, end } = readVarint(edit, at);
    at = end;
    return value;
  };
  const skipString = (): void => {
    const length = varint();
    at += length;
  };
  while (at < edit.length) {
    switch (varint()) {
      case 1: // comparator
        skipString();
        break;
      case 2: // log file
      case 3: // next file
      case 4: // last sequence
      case 9: // previous log file
        varint();
        break;
      case 5: // compaction pointer: level, key
        varint();
        skipString();
        break;
      case 6: // deleted table: level, number
        varint();
        live.delete(varint());
        break;
      case 7: // new table: level, number, bytes, smallest and largest key
        varint();
        live.add(varint());
        varint();
        skipString();
        skipString();
        break;
      default:
        throw new RangeError('a version edit has an unknown field');
    }
  }
}
