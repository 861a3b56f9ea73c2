import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { damaged } from '../../errors.ts';
import { maskedCrc, readVarint } from './encoding.ts';
import { tablesInManifest } from './manifest.ts';

/*
 * LevelDB stores a CRC32C with every block of a table (doc/table_format.md) but verifies it only on request, and classic-level has no way
 * to request it. A flipped bit in a Bloom filter, an index or a block's restart points can then hide a record or bring a deleted one back.
 * Only look-ups by key are affected; iteration, and so the digest check, does not notice. A wrong length crashes the process.
 * So this module checks all blocks before LevelDB reads any.
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
 * Checks every table of the closed LevelDB database in `directory`. Ignores missing files, which LevelDB reports itself, and files that the
 * manifest does not name, which a crash left with any content.
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

/** Reads the next file while the caller checks the current one. */
async function* readAhead(
  files: readonly string[],
): AsyncGenerator<{ readonly file: string; readonly table: Buffer | undefined }> {
  let reading: Promise<Buffer | undefined> | undefined;
  for (const [i, file] of files.entries()) {
    const table = await (reading ?? readIfThere(file));
    const next = files[i + 1];
    reading = next === undefined ? undefined : readIfThere(next);
    reading?.catch(() => undefined); // the next iteration reports the error
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

/** Returns false when the footer, or any block that can be reached from it, is damaged. */
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

/** Returns the contents of a block. @throws RangeError for a damaged block */
function readBlock(table: Buffer, { offset, size }: BlockHandle): Buffer {
  const end = offset + size;
  if (end + trailerBytes > table.length - footerBytes) throw new RangeError('the block ends outside its table');
  const checked = table.subarray(offset, end + 1); // the type too
  if (maskedCrc(checked) !== table.readUInt32LE(end + 1)) throw new RangeError("the block's checksum is wrong");
  if (checked[size] !== uncompressed) throw new RangeError('the block is compressed');
  return table.subarray(offset, end);
}

/**
 * Yields the block handles in an index or metaindex block, which holds entries
 * `shared, unshared, value length (varints) | rest of the key | value` and then the restart points.
 */
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
