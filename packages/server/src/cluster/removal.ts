import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogIndex } from '@transitd/raft-core';

export const removalFile = 'removed';

/** Keeps in the data directory that its node is no member any more, for all later starts. @throws errors of the file system */
export async function rememberRemoval(directory: string, atIndex: LogIndex): Promise<void> {
  const file = await open(join(directory, removalFile), 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify({ format: 1, atIndex })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  const folder = await open(directory, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
