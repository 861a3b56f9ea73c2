// Checks that every cited decision exists.
import type { Finding, SourceFile } from './source-files.ts';

/** Returns the numbers in `decision 4`, `decisions 4 and 7` and `decisions 4, 7`. */
export const citedIn = (text: string): number[] =>
  [...text.matchAll(/\bdecisions? (\d+(?:(?:,| and) \d+)*)/g)].flatMap(([, numbers = '']) => numbers.split(/,| and/).map(Number));

const record = /^docs\/decisions\/(\d{4})-[^/]*\.md$/;
/** Files whose citations are fixtures. */
const quoted = /^test\/(?:decisions\.test\.ts$|scripts\/)/;

/** Returns the citations of decisions that are not among `files`. */
export function decisionFindings(files: readonly SourceFile[]): Finding[] {
  const known = new Set(files.flatMap(({ path }) => record.exec(path)?.[1] ?? []).map(Number));
  return files
    .filter(({ path }) => !quoted.test(path))
    .flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, index) =>
        citedIn(line)
          .filter((number) => !known.has(number))
          .map((number) => ({ rule: 'decision', path, line: index + 1, message: `decision ${number} does not exist` })),
      ),
    );
}
