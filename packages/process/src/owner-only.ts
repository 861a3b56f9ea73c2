import { statSync } from 'node:fs';
import { StartError } from './exit.ts';

/**
 * Refuses a file or folder of this program that users other than its owner can read or write. A missing one passes: it is created with the
 * right mode later.
 * @throws StartError; errors of the file system, except that the path does not exist
 */
export function requireOwnerOnly(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & 0o077) === 0) return;
  const present = (found.mode & 0o777).toString(8).padStart(4, '0');
  throw new StartError(
    `${path} has mode ${present}, so users other than its owner can access it: run chmod ${found.isDirectory() ? '0700' : '0600'} ${path}`,
  );
}

/**
 * Refuses a folder that another user owns: files created in it would be unreadable to the folder's owner.
 * @param user - id of the user who runs this process; undefined on systems without user ids
 * @throws StartError; errors of the file system
 */
export function requireOwner(path: string, user = process.geteuid?.()): void {
  const { uid } = statSync(path);
  if (user !== undefined && user !== uid)
    throw new StartError(`${path} is owned by user id ${uid}, and this command runs as user id ${user}: run it as the owner`);
}
