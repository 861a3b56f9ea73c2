import { mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates a directory that only its owner can use, and its missing parents, durably. Node's own `recursive` option reports a read-only
 * file system as ENOENT.
 * @throws errors of the file system
 */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, 0o700);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && dirname(path) !== path) {
      await makeDirectory(dirname(path));
      return makeDirectory(path);
    }
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes the names in a directory durable. @throws errors of the file system */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  await directory.sync().finally(() => directory.close());
}
