import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { lineHash } from './chain.ts';

/** A target that lines are appended to. */
export interface Appendable {
  /** Hash of the last line, complete or torn; undefined for an empty file and for a target that cannot be read. */
  readonly tail?: string;
  /** Whether the last line lacks its newline; undefined for a target that cannot be read. */
  readonly torn?: boolean;
  /** Appends as many of these bytes as it can, from the first; returns how many. */
  write(bytes: Buffer): Promise<number>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

const newline = 0x0a;
const pieceBytes = 65_536;

/**
 * Opens a file for appending; creates it and its folders if they are missing (folders with mode 0700).
 * @throws Error of the file system; Error when the path is not a regular file
 */
export async function openAuditFile({ path, mode }: { readonly path: string; readonly mode: number }): Promise<Appendable> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, 'a+', mode);
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new Error('it is not a regular file');
    if ((status.mode & 0o777) !== mode) await file.chmod(mode);
    return {
      ...(await tailOf(file, status.size)),
      write: async (bytes) => (await file.write(bytes)).bytesWritten,
      sync: () => file.datasync(),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
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
