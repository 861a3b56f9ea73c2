import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { lineHash } from './chain.ts';

/** What lines are appended to. */
export interface Appendable {
  /** Hash of the last line that is there, whole or torn; undefined when there is none, or none that can be read. */
  readonly tail?: string;
  /** Whether the last line lacks its end; undefined when that cannot be seen. */
  readonly torn?: boolean;
  /** Appends the beginning of these bytes, and answers how many. */
  write(bytes: Buffer): Promise<number>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

const newline = 0x0a;
const pieceBytes = 65_536;

/**
 * Opens a file to append to, and makes it and its folders when they are not there (folders 0700).
 * @throws Error of the file system; Error for what is no regular file
 */
export async function openAuditFile({ path, mode }: { readonly path: string; readonly mode: number }): Promise<Appendable> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, 'a+', mode);
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new Error('it is no regular file');
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
