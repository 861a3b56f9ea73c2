import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { damaged } from '../../errors.ts';
import { maskedCrc, readVarint } from './encoding.ts';
import { tablesInManifest } from './manifest.ts';

/*
 * LevelDB keeps a CRC32C with every block of a table (doc/table_format.md) but compares it only when asked to, and classic-level
 * offers no way to ask. A wrong bit in a Bloom filter, an index or a block's restart points then hides a record, or brings a deleted
 * one back, for look-ups by key alone: iterating, as the digest's check does, sees nothing of it. A wrong length ends the process.
 * So all blocks are checked here, before LevelDB reads any.
 */

const footerBytes = 48;
const magic = Buffer.from('57fb808b247547db', 'hex');
const trailerBytes = 5; // type u8, masked CRC32C u32
const uncompressed = 0;

interface BlockHandle {
  readonly offset: number;
  readonly size: number;
}

/**
 * Checks every table of the LevelDB database in `directory`, which is closed. What is missing or unreadable as a file is left
 * to LevelDB, which sees that itself. Files that the manifest does not name are leftovers of a crash and may hold anything.
 * @throws StorageDamaged
 */
export async function checkTables(directory: string): Promise<void> {
  const current = await readIfThere(join(directory, 'CURRENT'));
  const name = /^(MANIFEST-\d+)\n$/.exec(current?.toString('latin1') ?? '')?.[1];
  const manifest = name === undefined ? undefined : await readIfThere(join(directory, name));
  const numbers = manifest === undefined ? [] : [...tablesInManifest(manifest)];
  const files = numbers.map((number) => join(directory, `${String(number).padStart(6, '0')}.ldb`));
  for await (const { file, table } of readAhead(files)) {
    if (table !== undefined && !allBlocksGood(table)) throw damaged(file, 'has a wrong checksum');
  }
}

/** The next file is read while one is checked. */
async function* readAhead(
  files: readonly string[],
): AsyncGenerator<{ readonly file: string; readonly table: Buffer | undefined }> {
  let reading: Promise<Buffer | undefined> | undefined;
  for (const [i, file] of files.entries()) {
    const table = await (reading ?? readIfThere(file));
    const next = files[i + 1];
    reading = next === undefined ? undefined : readIfThere(next);
    reading?.catch(() => undefined); // whoever asks for that file hears of it
    yield { file, table };
  }
}

async function readIfThere(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** False when a block that can be reached from the footer of `table` is not what was written, or the footer is none. */
export function allBlocksGood(table: Buffer): boolean {
  const footer = table.subarray(-footerBytes);
  if (table.length < footerBytes || !footer.subarray(-magic.length).equals(magic)) return false;
  try {
    const metaindex = readHandle(footer, 0);
    const index = readHandle(footer, metaindex.end);
    for (const block of [metaindex.handle, index.handle]) {
      for (const handle of handlesIn(readBlock(table, block))) readBlock(table, handle);
    }
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The contents of a block. @throws RangeError when it is not what was written */
function readBlock(table: Buffer, { offset, size }: BlockHandle): Buffer {
  const end = offset + size;
  if (end + trailerBytes > table.length - footerBytes) throw new RangeError('the block ends outside its table');
  const checked = table.subarray(offset, end + 1); // the type too
  if (maskedCrc(checked) !== table.readUInt32LE(end + 1)) throw new RangeError("the block's checksum is wrong");
  if (checked[size] !== uncompressed) throw new RangeError('the block is compressed');
  return table.subarray(offset, end);
}

/** The values of an index or metaindex block: entries `shared, unshared, value length (varints) | key rest | value`, then restarts. */
function* handlesIn(block: Buffer): Generator<BlockHandle> {
  const end = block.length - 4 - 4 * block.readUInt32LE(block.length - 4);
  for (let at = 0; at < end; ) {
    const shared = readVarint(block, at);
    const unshared = readVarint(block, shared.end);
    const length = readVarint(block, unshared.end);
    const value = length.end + unshared.value;
    yield readHandle(block, value).handle;
    at = value + length.value;
  }
}

function readHandle(bytes: Buffer, at: number): { readonly handle: BlockHandle; readonly end: number } {
  const offset = readVarint(bytes, at);
  const size = readVarint(bytes, offset.end);
  return { handle: { offset: offset.value, size: size.value }, end: size.end };
}
