// Finds the files that a server writes besides its log, namely its audit files, and also its configuration and its seal key.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';

interface Written {
  readonly data_dir?: string;
  readonly audit?: readonly { readonly type: string; readonly path?: string }[];
  readonly seal?: { readonly key_file?: string; readonly key_env?: string };
}

/** Returns the configuration named on a command line; undefined if it names none or the file cannot be read. */
export function configurationOf(command: readonly string[]): Written {
  const file = command[command.indexOf('--config') + 1];
  if (!command.includes('--config') || file === undefined || !existsSync(file)) return {};
  try {
    return parse(readFileSync(file, 'utf8')) ?? {};
  } catch {
    return {};
  }
}

/** Returns the audit files, including renamed ones. */
export function auditFilesOf({ audit = [] }: Written): readonly string[] {
  const folders = new Set(audit.flatMap(({ path }) => (path !== undefined && isFolder(dirname(path)) ? [dirname(path)] : [])));
  return [...folders].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.includes('.log'))
      .map((name) => join(folder, name))
      .filter((file) => statSync(file).isFile()),
  );
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Returns the seal key: 32 bytes, raw or in base64, as the tests write it. */
export function sealKeyOf({ seal }: Written, env: Readonly<Record<string, string>>): Buffer | undefined {
  const { key_file: file, key_env: variable = '' } = seal ?? {};
  const given = file !== undefined && existsSync(file) ? readFileSync(file) : env[variable];
  if (given === undefined) return undefined;
  return given.length === 32 ? Buffer.from(given as string) : Buffer.from(String(given).trim(), 'base64');
}
