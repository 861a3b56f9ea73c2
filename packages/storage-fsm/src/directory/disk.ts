import { type FileHandle, open, readdir, rename, rm, unlink } from 'node:fs/promises';
import { makeDirectory, syncDirectory } from '../directories.ts';
import { lockDirectory } from './directory-lock.ts';

/** One open file. Every call rejects on the first error; the caller then stops using the file. */
export interface DiskFile {
  size(): Promise<number>;
  /** Returns fewer bytes than requested only at the end of the file. */
  read(range: { position: number; bytes: number }): Promise<Buffer>;
  /** Writes all of `bytes` or rejects. */
  write(position: number, bytes: Uint8Array): Promise<void>;
  truncate(size: number): Promise<void>;
  /** Makes the content durable. `Disk.syncDirectory` makes the name durable. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The file system calls that the log needs. Paths are absolute. */
export interface Disk {
  /** Resolves to undefined if there is no such file. */
  open(path: string): Promise<DiskFile | undefined>;
  /** Creates an empty file; replaces an existing one. */
  create(path: string): Promise<DiskFile>;
  rename(path: { from: string; to: string }): Promise<void>;
  remove(path: string): Promise<void>;
  /** Lists the names in a directory; resolves to undefined if there is no directory. */
  list(directory: string): Promise<readonly string[] | undefined>;
  /** Creates a directory and its missing parents, durably. */
  makeDirectory(path: string): Promise<void>;
  /** Removes a directory and its contents; a missing one is no error. Durable only after the parent directory is synced. */
  removeDirectory(path: string): Promise<void>;
  /** Makes the names in a directory durable. */
  syncDirectory(path: string): Promise<void>;
  /** Locks out every other process until the returned function is called or this process ends. @throws StorageInUse */
  lock(directory: string): Promise<() => Promise<void>>;
}

/** The disk of this machine. Only the user that runs the node may read the files. */
export const localDisk: Disk = {
  open: (path) => unlessMissing(openFile(path, 'r+')),
  create: (path) => openFile(path, 'w+'),
  rename: ({ from, to }) => rename(from, to),
  remove: (path) => unlink(path),
  list: (directory) => unlessMissing(readdir(directory)),
  removeDirectory: (path) => rm(path, { recursive: true, force: true }),
  lock: lockDirectory,
  makeDirectory,
  syncDirectory,
};

async function openFile(path: string, flags: 'r+' | 'w+'): Promise<DiskFile> {
  const handle = await open(path, flags, 0o600);
  return {
    size: async () => (await handle.stat()).size,
    read: (range) => readFully(handle, range),
    write: (position, bytes) => writeFully(handle, position, bytes),
    truncate: (size) => handle.truncate(size),
    sync: () => handle.datasync(),
    close: () => handle.close(),
  };
}

async function readFully(handle: FileHandle, { position, bytes }: { position: number; bytes: number }): Promise<Buffer> {
  const target = Buffer.allocUnsafe(bytes);
  let have = 0;
  while (have < bytes) {
    const { bytesRead } = await handle.read(target, have, bytes - have, position + have);
    if (bytesRead === 0) break;
    have += bytesRead;
  }
  return target.subarray(0, have);
}

/** Repeats after a short write: the next call either continues the write or reports the error. */
async function writeFully(handle: FileHandle, position: number, bytes: Uint8Array): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    if (bytesWritten === 0) throw new Error('the file system wrote nothing and gave no reason');
    done += bytesWritten;
  }
}

async function unlessMissing<T>(outcome: Promise<T>): Promise<T | undefined> {
  try {
    return await outcome;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
