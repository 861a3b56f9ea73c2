import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Runs `use` with a temporary directory and removes it afterwards. */
export async function inTemporaryDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'state-'));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}
