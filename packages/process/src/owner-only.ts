import { statSync } from 'node:fs';
import { StartError } from './exit.ts';

/**
 * Refuses a file or folder of ours that others than its owner could read or change. What is not there yet is made right later.
 * @throws StartError; errors of the file system other than that nothing is there
 */
export function requireOwnerOnly(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & 0o077) === 0) return;
  const present = (found.mode & 0o777).toString(8).padStart(4, '0');
  throw new StartError(
    `${path} has the mode ${present}, so others than its owner can use it: it must be ${found.isDirectory() ? '0700' : '0600'}`,
  );
}

/**
 * Refuses a folder of another user: what is made in it would be closed to its owner.
 * @param user - id of the one who runs this; none where the system has no such ids
 * @throws StartError; errors of the file system
 */
export function requireOwn(path: string, user = process.geteuid?.()): void {
  const { uid } = statSync(path);
  if (user !== undefined && user !== uid)
    throw new StartError(`${path} belongs to the user with the id ${uid}: run this as that user`);
}

/**
 * Refuses a file that others than its owner could change. Reading is its mount's business: secrets are handed into containers with
 * modes such as 0440.
 * @throws StartError; errors of the file system
 */
export function requireWrittenByOwner(path: string): void {
  const { mode } = statSync(path);
  if ((mode & 0o022) === 0) return;
  const present = (mode & 0o777).toString(8).padStart(4, '0');
  throw new StartError(`${path} has the mode ${present}, so others than its owner can change it`);
}
