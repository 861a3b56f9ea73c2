import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '@transitd/storage-fsm';

/** The node was removed from the cluster. */
export const removalFile = 'removed';
/** A peer knows a later incarnation of the node: entries that it acknowledged may be missing here. */
export const overtakenFile = 'overtaken';

/** Records in the data directory, for all later starts, why the node may not take part. @throws errors of the file system */
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
