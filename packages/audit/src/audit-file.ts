import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDirectory, syncDirectory } from '@transitd/storage-fsm';
import { lineHash } from './chain.ts';

/** Changes of a file by others: it has another name now, it has no name any more, or it is shorter. */
export const fileChanges = ['renamed', 'removed', 'truncated'] as const;
export type FileChange = (typeof fileChanges)[number];

/** The state of a target, compared with the last check or its opening. */
export type Fate =
  | { readonly state: 'in place' | 'renamed' | 'truncated' }
  /** @property since - the lines that were appended since the last check */
  | { readonly state: 'removed'; readonly since: Buffer };

/** A target that lines are appended to. */
export interface Appendable {
  /** Hash of the last line, complete or torn; undefined for an empty file and for a target that cannot be read. */
  readonly tail?: string;
  /** Whether the last line lacks its newline; undefined for a target that cannot be read. */
  readonly torn?: boolean;
  /** Appends as many of these bytes as it can, from the first; returns how many. */
  write(bytes: Buffer): Promise<number>;
  sync(): Promise<void>;
  /**
   * Writes the bytes at the end of the target again, and syncs. After a failed sync the kernel marks their pages clean, so another sync
   * alone would write nothing. Does nothing to a file that may only be appended to. Absent for a target without a path.
   * @param end - the last bytes of the target
   */
  rewriteEnd?(end: Buffer): Promise<void>;
  /** Checks whether the path still leads to the target. Absent for a target without a path. @throws Error of the file system */
  fate?(): Promise<Fate>;
  close(): Promise<void>;
}

const newline = 0x0a;
const pieceBytes = 65_536;

interface AuditFileOptions {
  readonly path: string;
  readonly mode: number;
  /** Whether the lines will be synced, so that the name of a new file must be durable; false when absent. */
  readonly sync?: boolean;
}

/**
 * Opens a file for appending; creates it and its folders if they are missing (folders with mode 0700).
 * @throws Error of the file system; Error when the path is not a regular file
 */
export async function openAuditFile({ path, mode, sync = false }: AuditFileOptions): Promise<Appendable> {
  await makeDirectory(dirname(path));
  const file = await open(path, 'a+', mode);
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new Error('it is not a regular file');
    if ((status.mode & 0o777) !== mode) await file.chmod(mode);
    // The file may be new: without this, a power failure could lose its name, and every synced line with it.
    if (sync && status.size === 0) await syncDirectory(dirname(path));
    const size = { checked: status.size, expected: status.size };
    const fate = async (): Promise<Fate> => {
      const { checked, expected } = size;
      // Numbers of inodes above 2^53 differ only as bigints.
      const held = await file.stat({ bigint: true });
      const found = await stat(path, { bigint: true }).catch(ifMissing);
      const present = Number(held.size);
      size.checked = size.expected = present;
      if (found?.dev === held.dev && found.ino === held.ino) return { state: present < expected ? 'truncated' : 'in place' };
      if (held.nlink > 0n) return { state: 'renamed' };
      return { state: 'removed', since: await readAt(file, checked, Math.max(0, present - checked)) };
    };
    return {
      ...(await tailOf(file, status.size)),
      fate,
      write: async (bytes) => {
        const { bytesWritten } = await file.write(bytes);
        size.expected += bytesWritten;
        return bytesWritten;
      },
      sync: () => file.datasync(),
      rewriteEnd: (end) => rewriteEnd({ file, path }, end),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Uses a handle of its own: the one of the file appends, wherever a write should go. */
async function rewriteEnd({ file, path }: { readonly file: FileHandle; readonly path: string }, end: Buffer): Promise<void> {
  const { dev, ino, size } = await file.stat({ bigint: true });
  const again = await open(path, 'r+').catch(ifAppendOnly);
  if (again === undefined) return;
  try {
    const found = await again.stat({ bigint: true });
    if (found.dev !== dev || found.ino !== ino) throw new Error('the file was replaced');
    for (let written = 0; written < end.length; ) {
      const position = Number(size) - end.length + written;
      written += (await again.write(end, written, end.length - written, position)).bytesWritten;
    }
    await again.datasync();
  } finally {
    await again.close();
  }
}

/** Returns undefined for a file that may only be appended to. */
function ifAppendOnly(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'EPERM' && error.code !== 'EACCES') throw error;
}

/** Returns undefined for a path that leads to nothing. */
function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
}

async function tailOf(file: FileHandle, size: number): Promise<{ readonly tail?: string; readonly torn: boolean }> {
  if (size === 0) return { torn: false };
  const torn = (await readAt(file, size - 1, 1))[0] !== newline;
  const end = torn ? size : size - 1;
  let line: Buffer = Buffer.alloc(0);
  for (let from = end; from > 0; ) {
    const start = Math.max(0, from - pieceBytes);
    const piece = await readAt(file, start, from - start);
    const at = piece.lastIndexOf(newline);
    line = Buffer.concat([piece.subarray(at + 1), line]);
    if (at >= 0) break;
    from = start;
  }
  return { tail: lineHash(line), torn };
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, position);
  return bytes.subarray(0, bytesRead);
}
