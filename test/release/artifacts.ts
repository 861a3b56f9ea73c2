// The artifacts under test: `npm run release` made them before it runs these tests.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { root, version } from '../../scripts/release/project.ts';

/** Returns the path of an artifact. @throws if it was not made */
export function artifact(name: string): string {
  const path = join(root, 'dist', name);
  if (!existsSync(path)) throw new Error(`${path} is missing: run "npm run release -- --dry-run"`);
  return path;
}

export const npmArchives = (): string[] => [artifact(`transitd-${version}.tgz`), artifact(`transitd-client-${version}.tgz`)];

/** PATH without the folders that this checkout's npm adds, so that a test finds only programs of the machine. */
export const machinePath = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

/** Temporary folders; `clean` removes them. */
export class Folders {
  readonly #folders: string[] = [];

  empty(): string {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-installed-'));
    this.#folders.push(folder);
    return folder;
  }

  clean(): void {
    for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Returns the lines of a document's shell blocks.
 * @param file - relative to the repository
 * @param heading - of the section; default: all sections
 */
export function shellLines(file: string, heading?: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const section = heading === undefined ? text : text.split(/^(?=## )/m).find((one) => one.startsWith(`## ${heading}\n`));
  if (section === undefined) throw new Error(`${file} has no section ${heading}`);
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block = '']) => block.trimEnd().split('\n'));
}
