// A file system of a few megabytes, for tests that fill one.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

/** Mounting takes root, which a machine of CI always has. */
export const mountable = process.getuid?.() === 0 || process.env['CI'] !== undefined;

/** The reason, appended to the names of tests that are skipped. */
export const mountNote = mountable ? '' : ' (skipped: mounting a file system takes root)';

export class SmallDisk {
  readonly #mountPoint: string;
  readonly #filler: string;

  /** @param folder - where the mount point is created */
  constructor(folder: string, { mebibytes }: { readonly mebibytes: number }) {
    this.#mountPoint = join(folder, 'disk');
    this.#filler = join(this.#mountPoint, 'filler');
    mkdirSync(this.#mountPoint);
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', this.#mountPoint]);
  }

  /** Creates a data directory on it. */
  dataDir(): string {
    const dataDir = join(this.#mountPoint, 'node');
    mkdirSync(dataDir, { mode: 0o700 });
    return dataDir;
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#mountPoint);
    return bavail * bsize;
  }

  /** Writes a file beside the data directory, or lets it grow, until only so many bytes are free. */
  fillTo(freeBytes: number): void {
    // To leave nothing free, the file grows until the file system refuses more.
    const source = freeBytes === 0 ? 'cat' : `head -c ${Math.max(0, this.freeBytes - freeBytes)}`;
    spawnSync('sh', ['-c', `${source} /dev/zero >> ${this.#filler}`], { stdio: 'ignore' });
  }

  /** Removes that file. */
  clear(): void {
    rmSync(this.#filler, { force: true });
  }

  /** Unmounts the file system. No process may have a file open on it. */
  unmount(): void {
    if (existsSync(this.#mountPoint)) execFileSync('umount', [this.#mountPoint]);
  }
}
