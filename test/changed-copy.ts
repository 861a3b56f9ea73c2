// A copy of the packages with changes in some files, to be run instead of the sources.
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './process/live-server.ts';
import { joinedProgram } from './program.ts';

/** One change in one place: `find` occurs once in the file, and `replace` takes its place. */
export interface Change {
  /** Path within `packages`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/**
 * Copies the packages into the folder, makes the changes there, and joins the copies to a program.
 * @returns the file that starts the program
 * @throws Error if a change does not apply to exactly one place
 */
export async function changedCopy(folder: string, changes: readonly Change[]): Promise<string> {
  for (const name of readdirSync(join(root, 'packages'))) {
    const from = join(root, 'packages', name);
    const to = join(folder, 'packages', name);
    mkdirSync(to, { recursive: true });
    for (const part of readdirSync(from)) {
      if (part === 'src' || part === 'package.json' || part.endsWith('.mjs'))
        cpSync(join(from, part), join(to, part), { recursive: true });
    }
  }
  mkdirSync(join(folder, 'node_modules/@transitd'), { recursive: true });
  for (const name of readdirSync(join(root, 'node_modules')))
    if (name !== '@transitd' && name !== '.cache')
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  for (const name of readdirSync(join(folder, 'packages')))
    symlinkSync(join(folder, 'packages', name), join(folder, 'node_modules/@transitd', name));
  for (const { file, find, replace } of changes) {
    const path = join(folder, 'packages', file);
    const parts = readFileSync(path, 'utf8').split(find);
    if (parts.length !== 2) throw new Error(`'${find}' occurs ${parts.length - 1} times in ${file}, not once`);
    writeFileSync(path, parts.join(replace));
  }
  const program = join(folder, 'program');
  mkdirSync(program);
  return joinedProgram(folder, program);
}
