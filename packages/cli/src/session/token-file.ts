import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { requireOwnerOnly, StartError } from '@transitd/process';

/**
 * Returns the token stored by the last login; undefined before the first login.
 * @throws StartError if other users can read the file, or this process cannot
 */
export function readToken(file: string): string | undefined {
  try {
    requireOwnerOnly(file);
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw fileError('read', file, error);
  }
}

/** Stores a token in a file that has the mode 0600 from the moment it is created. @throws StartError */
export function storeToken(file: string, token: string): void {
  const temporary = `${file}.${process.pid}`;
  try {
    writeFileSync(temporary, `${token}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw fileError('written', file, error);
  }
}

export const deleteToken = (file: string): void => rmSync(file, { force: true });

function fileError(action: string, file: string, error: unknown): StartError {
  if (error instanceof StartError) return error;
  return new StartError(
    `the token file ${file} cannot be ${action}: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`,
  );
}
