import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Generations of a node's data, by number: an installed snapshot creates the next one. */
export const generationsIn = (dataDir: string): readonly string[] =>
  readdirSync(dataDir).filter((name) => name.startsWith('generation-'));

/** Flips one bit in the middle of the used part of the node's log. @returns the file */
export function damageLog(dataDir: string): string {
  const [generation = ''] = generationsIn(dataDir);
  const folder = join(dataDir, generation, 'log');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
  const written = files.filter((file) => statSync(file).isFile()).map((file) => ({ file, bytes: readFileSync(file) }));
  const used = written.map(({ file, bytes }) => ({ file, bytes, length: endOf(bytes) }));
  const longest = used.toSorted((a, b) => b.length - a.length)[0];
  if (longest === undefined) throw new Error(`no log in ${folder}`);
  const at = longest.length >> 1;
  longest.bytes.writeUInt8(longest.bytes.readUInt8(at) ^ 0x10, at);
  writeFileSync(longest.file, longest.bytes);
  return longest.file;
}

/** Returns the end of the written part, after which the file has only preallocated zeros. */
function endOf(bytes: Buffer): number {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end -= 1;
  return end;
}
