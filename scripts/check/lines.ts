// The limit on the length of lines. The length of a file is advice only: what is read together stays together.
import type { Finding, SourceFile } from './source-files.ts';

export const lineCharsMax = 140;

const isSource = (path: string): boolean => /\.(?:tsx?|mjs)$/.test(path);

/** Returns the lines that are too long. */
export function lineFindings(file: SourceFile): Finding[] {
  if (/\.(?:json|service)$/.test(file.path)) return [];
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
