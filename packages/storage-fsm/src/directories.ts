import { mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates a directory that only its owner can use, and its missing parents, durably. Node's own `recursive` option reports a read-only
 * file system as ENOENT.
 * @throws errors of the file system
 */
export async function makeDirectory(path: string): Promise<void> {
  if (await isDirectory(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeDirectory(parent);
  try {
    await mkdir(path, 0o700);
  } catch (error) {
    if (!(await isDirectory(path))) throw error; // otherwise somebody else was faster
  }
  await syncDirectory(parent);
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

/** Makes the names in a directory durable. @throws errors of the file system */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  await directory.sync().finally(() => directory.close());
}
