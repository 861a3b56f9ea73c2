import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '@transitd/storage-fsm';

/** Name of the file that records that this node was removed from the cluster. */
export const removalFile = 'removed';
/**
 * Name of the file that records that a peer knows a later incarnation of this node. This disk may then lack entries that the node
 * acknowledged.
 */
export const overtakenFile = 'overtaken';

/**
 * Records in the data directory why this node must not take part in the cluster, for all later starts. @throws errors of the file system
 */
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
