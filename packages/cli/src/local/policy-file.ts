import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { exitCode, StartError } from '@transitd/process';
import { processSources, readFile } from '../terminal/input.ts';
import { printError, printExact } from '../terminal/print.ts';
import { formatPolicy } from './policy-format.ts';

/**
 * Formats a policy file in place, or standard input (`-`) to standard output.
 * @returns the exit code: 2 if `check` is set and the text is not formatted
 * @throws StartError
 */
export async function formatPolicyFile(file: string, { check }: { readonly check: boolean }): Promise<number> {
  const text = (file === '-' ? await processSources().stdin() : readFile(file)).toString('utf8');
  const source = file === '-' ? 'standard input' : file;
  const formatted = formatPolicy(text, source);
  if (check) {
    if (formatted !== text) printError(`transitd: ${source} is not formatted`);
    return formatted === text ? exitCode.ok : exitCode.denied;
  }
  if (file === '-') printExact(formatted);
  else if (formatted !== text) replace(file, formatted);
  return exitCode.ok;
}

/** Replaces a file as a whole, with its mode. @throws StartError */
function replace(file: string, text: string): void {
  const temporary = `${file}.${process.pid}`;
  try {
    writeFileSync(temporary, text, { flag: 'wx', mode: statSync(file).mode & 0o777 });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw new StartError(`${file} cannot be written: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
}
