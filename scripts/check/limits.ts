// Limits on the size of lines, files and folders.
import { dirname } from 'node:path/posix';
import type { Finding, SourceFile } from './source-files.ts';

export const lineCharsMax = 140;
export const sourceLinesMax = 400;
/** A test file repeats its set-up per case, so it may be longer. */
export const testLinesMax = 500;
export const folderFilesMax = 30;

/** Files that may be longer, and why. */
export const longFiles: Readonly<Record<string, string>> = {
  'packages/cluster/test/transport/cluster-listener.test.ts': 'every case needs the same listener with real certificates',
  'packages/cluster/test/transport/raft-transport.test.ts': 'every case needs the same two ends with real certificates',
};

/** Files whose lines may be longer, and why. */
export const longLines: Readonly<Record<string, string>> = {};

const isSource = (path: string): boolean => /\.(?:tsx?|mjs)$/.test(path);
const isTest = (path: string): boolean => /(?:^|\/)test\//.test(path);

/** Returns the lines that are too long. */
export function lineFindings(file: SourceFile, allowed: Readonly<Record<string, string>> = longLines): Finding[] {
  if (file.path in allowed || /\.(?:json|service)$/.test(file.path)) return [];
  const isMarkdown = file.path.endsWith('.md');
  return file.text.split('\n').flatMap((line, index) => {
    const { length } = [...(isMarkdown ? breakable(line) : line)];
    if (length <= lineCharsMax || (isSource(file.path) && isOneString(line))) return [];
    return [{ rule: 'line', path: file.path, line: index + 1, message: `${length} characters; at most ${lineCharsMax}` }];
  });
}

/** A string literal alone on its line may be longer: it is not broken, so that a search finds it. */
const isOneString = (line: string): boolean => /^\s*(?:['"`]|[\w.]+: ['"`]).*['"`][,;:]?$/.test(line);

/** Returns the part of a Markdown line that the limit applies to: table rows and addresses of links cannot be broken. */
const breakable = (line: string): string =>
  /^\s*\|/.test(line) ? '' : line.replace(/(?<=\])\([^)\s]*\)|<?https?:\/\/[^\s)>]+>?/g, '');

/** Returns the file itself if it has too many lines. */
export function lengthFindings(file: SourceFile, allowed: Readonly<Record<string, string>> = longFiles): Finding[] {
  if (!isSource(file.path) || file.path in allowed) return [];
  const lines = file.text.replace(/\n$/, '').split('\n').length;
  const max = isTest(file.path) ? testLinesMax : sourceLinesMax;
  return lines <= max ? [] : [{ rule: 'length', path: file.path, line: 0, message: `${lines} lines; at most ${max}` }];
}

/** Returns the folders that hold too many source files; those in folders below do not count. */
export function folderFindings(files: readonly SourceFile[]): Finding[] {
  const counts = new Map<string, number>();
  for (const { path } of files) if (isSource(path)) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > folderFilesMax)
    .map(([path, count]) => ({ rule: 'folder', path, line: 0, message: `${count} source files; at most ${folderFilesMax}` }));
}
