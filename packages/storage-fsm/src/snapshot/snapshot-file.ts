import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { localDisk } from '../directory/disk.ts';
import { chunkBytes } from './snapshot-format.ts';

/** Writes a stream to a file that only its owner may read. The file gets its name only when all of it is on disk. */
export async function writeSnapshotFile(path: string, stream: AsyncIterable<Uint8Array>): Promise<void> {
  const unfinished = `${path}.new`;
  const file = await open(unfinished, 'w', 0o600);
  try {
    await file.writeFile(stream);
    await file.sync();
    await file.close();
    await rename(unfinished, path);
    await localDisk.syncDirectory(dirname(path));
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(unfinished, { force: true }).catch(() => undefined); // the first error is the cause
    throw error;
  }
}

/** Reads a snapshot file, for `inspectSnapshot` and `restoreSnapshot`. */
export const readSnapshotFile = (path: string): AsyncIterable<Uint8Array> =>
  createReadStream(path, { highWaterMark: chunkBytes });
