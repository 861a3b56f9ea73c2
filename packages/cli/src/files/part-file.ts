import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, link, lstat, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StartError } from '@transitd/process';
import { syncDirectory } from '@transitd/storage-fsm';

/** Reads the bytes at a position; fewer at the end of the file. */
export async function readAt(file: FileHandle, buffer: Uint8Array, position: number): Promise<Uint8Array> {
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** Writes all bytes at a position. */
export async function writeAt(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; )
    written += (await file.write(bytes, written, bytes.length - written, position + written)).bytesWritten;
}

/** An output that gets its name only when it is complete. Until then it is `<name>.part`, readable by its owner only. */
export class PartFile {
  readonly file: FileHandle;
  readonly #path: string;
  readonly #part: string;
  #isOpen = true;

  private constructor(file: FileHandle, path: string, part: string) {
    this.file = file;
    this.#path = path;
    this.#part = part;
  }

  /** @param resume - continue an existing part, which must be a file that only the calling user can read @throws StartError */
  static async open(path: string, { resume }: { readonly resume: boolean }): Promise<PartFile> {
    const part = `${path}.part`;
    if (await isTaken(path)) throw new StartError(`${path} already exists and is not overwritten`);
    let file: FileHandle;
    try {
      file = await open(part, resume ? constants.O_RDWR | constants.O_NOFOLLOW : 'wx+', 0o600);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EEXIST')
        throw new StartError(
          `${part} exists: use --resume to continue, or delete it, unless another process is still writing it`,
        );
      if (code === 'ENOENT' && resume) throw new StartError(`${part} does not exist: there is nothing to continue`);
      throw fileError(part, error);
    }
    // In a folder that others can write to, the part may be a file of theirs, in which they would read the output.
    if (await isPrivate(file)) return new PartFile(file, path, part);
    await file.close();
    throw new StartError(`${part} is not a file that only its owner, the calling user, can read: delete it and start again`);
  }

  /** Makes the file durable and gives it its name, without replacing another file. @throws StartError */
  async finish(bytes: number): Promise<void> {
    await this.file.truncate(bytes);
    await this.file.sync();
    await this.#close();
    try {
      await link(this.#part, this.#path);
    } catch (error) {
      if (await isTaken(this.#path)) throw new StartError(`${this.#path} already exists and is not overwritten`);
      if (!withoutLinks.has((error as NodeJS.ErrnoException).code ?? '')) throw fileError(this.#part, error);
      await rename(this.#part, this.#path);
    }
    await syncDirectory(dirname(this.#path));
    // A leftover is the same file under another name, and the output is complete.
    await rm(this.#part, { force: true }).catch(() => undefined);
  }

  /** Closes the file and keeps it, so that the work can be continued. Deletes it and returns false if it is empty. */
  async keep(): Promise<boolean> {
    if (!this.#isOpen) return true;
    const isEmpty = (await this.file.stat()).size === 0;
    if (isEmpty) await this.discard();
    else {
      await this.file.sync().catch(() => undefined);
      await this.#close();
    }
    return !isEmpty;
  }

  /** Closes the file and deletes it. */
  async discard(): Promise<void> {
    await this.#close();
    await rm(this.#part, { force: true });
  }

  async #close(): Promise<void> {
    if (this.#isOpen) await this.file.close();
    this.#isOpen = false;
  }
}

/** Errors of `link` on a file system without hard links. */
const withoutLinks: ReadonlySet<string> = new Set(['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK']);

/** Whether a path has a file, a folder or a symbolic link, even one that leads nowhere. */
const isTaken = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

async function isPrivate(file: FileHandle): Promise<boolean> {
  const stats = await file.stat();
  return stats.isFile() && stats.nlink === 1 && stats.uid === process.geteuid?.() && (stats.mode & 0o077) === 0;
}

/** Opens a file for reading. @throws StartError */
export async function openSource(path: string): Promise<{ readonly file: FileHandle; readonly stats: BigIntStats }> {
  try {
    // Without O_NONBLOCK, the call would wait for a writer of a named pipe.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await file.stat({ bigint: true });
    if (stats.isFile()) return { file, stats };
    await file.close();
  } catch (error) {
    throw fileError(path, error);
  }
  throw new StartError(`${path} is not a regular file`);
}

/** @returns a StartError for an error of the file system; any other error unchanged */
export function fileError(path: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return code !== undefined && syscall !== undefined ? new StartError(`${path} cannot be used: ${code}`) : error;
}

/** @returns a StartError that names the file, for an error of the file system while a file was converted; any other error unchanged */
export const failureOf = (error: unknown, { input, output }: { readonly input: string; readonly output: string }): unknown =>
  fileError((error as NodeJS.ErrnoException).syscall === 'read' ? input : `${output}.part`, error);
