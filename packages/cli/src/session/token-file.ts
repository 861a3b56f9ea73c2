import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { requireOwnerOnly, StartError } from '@transitd/process';

/**
 * The token that a login has kept; nothing when there is none.
 * @throws StartError for a file that others can read, or that cannot be read
 */
export function keptToken(file: string): string | undefined {
  try {
    requireOwnerOnly(file);
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cannot('read', file, error);
  }
}

/** Only its owner can read it, from its first byte on. @throws StartError */
export function keepToken(file: string, token: string): void {
  const part = `${file}.${process.pid}`;
  try {
    writeFileSync(part, `${token}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(part, file);
  } catch (error) {
    rmSync(part, { force: true });
    throw cannot('written', file, error);
  }
}

export const forgetToken = (file: string): void => rmSync(file, { force: true });

function cannot(what: string, file: string, error: unknown): StartError {
  if (error instanceof StartError) return error;
  return new StartError(`the token file ${file} cannot be ${what}: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
}
