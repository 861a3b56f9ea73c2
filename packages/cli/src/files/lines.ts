import type { FileHandle } from 'node:fs/promises';
import { StartError } from '@transitd/process';

/** One line of a file, without its `\n`. */
export interface FileLine {
  /** From 1. */
  readonly number: number;
  readonly text: string;
  /** Where the next line begins, in bytes. */
  readonly endByte: number;
  /** False for a last line without `\n`. */
  readonly isEnded: boolean;
}

const chunkBytes = 1024 * 1024;
const lineEnd = 0x0a;

/**
 * Reads the lines of a file from its beginning, with the memory of one line. Only `\n` ends a line: the other line ends of Unicode may
 * occur in the strings of JSON.
 * @throws StartError for a line that is too long or not UTF-8; it names `path` and the line
 */
export async function* linesOf(file: FileHandle, path: string, lineBytesMax: number): AsyncGenerator<FileLine> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const fault = (number: number, what: string): StartError => new StartError(`line ${number} of ${path} ${what}`);
  const decoded = (bytes: Uint8Array, number: number): string => {
    if (bytes.length > lineBytesMax) throw fault(number, `is longer than ${lineBytesMax} bytes`);
    try {
      return decoder.decode(bytes);
    } catch {
      throw fault(number, 'is not UTF-8');
    }
  };
  let [rest, position, endByte, number]: [Buffer, number, number, number] = [Buffer.alloc(0), 0, 0, 0];
  for (;;) {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    const { bytesRead } = await file.read(chunk, 0, chunkBytes, position);
    position += bytesRead;
    // A line end can only be in the new bytes.
    let from = rest.length;
    rest = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
    let start = 0;
    for (let end = rest.indexOf(lineEnd, from); end >= 0; end = rest.indexOf(lineEnd, from)) {
      number += 1;
      endByte += end + 1 - start;
      yield { number, text: decoded(rest.subarray(start, end), number), endByte, isEnded: true };
      start = from = end + 1;
    }
    rest = rest.subarray(start);
    if (rest.length > lineBytesMax) throw fault(number + 1, `is longer than ${lineBytesMax} bytes`);
    if (bytesRead > 0) continue;
    if (rest.length > 0)
      yield { number: number + 1, text: decoded(rest, number + 1), endByte: endByte + rest.length, isEnded: false };
    return;
  }
}
