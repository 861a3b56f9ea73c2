// Facts of the repository that every step of a release needs.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

export const readManifest = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

const manifest = readManifest(root);

/** Version of the release. */
export const version = manifest.version;

/** The Node version that the tests run on and that the archives include. */
export const nodeVersion = manifest.devDependencies?.['node'] ?? '';

/** Returns the output of a git command in the repository, without the last newline. */
export const git = (...args: readonly string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trimEnd();

/** Seconds since 1970 of the released commit: the time of every file in a release, so that two builds are equal. */
export const commitSeconds = (): number => Number(process.env['SOURCE_DATE_EPOCH'] ?? git('log', '-1', '--format=%ct'));

/** Environment variable with the level of gzip for archives and Debian packages. */
export const gzipLevelVariable = 'TRANSITD_RELEASE_GZIP_LEVEL';

/** Returns the level of gzip: 6, unless a dry run saves the processor time. */
export const gzipLevel = (): string => process.env[gzipLevelVariable] ?? '6';
