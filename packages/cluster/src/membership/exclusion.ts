import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '@transitd/storage-fsm';

/** Its node is no member any more. */
export const removalFile = 'removed';
/** A later run of the node was met, so that what it acknowledged may be missing here. */
export const overtakenFile = 'overtaken';

/** Keeps in the data directory, for all later starts, what its node has been told of itself. @throws errors of the file system */
export async function recordExclusion(directory: string, name: string, facts: object): Promise<void> {
  const file = await open(join(directory, name), 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify({ format: 1, ...facts })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await syncDirectory(directory);
}
