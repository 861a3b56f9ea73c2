// Which failed files of tests run a second time (docs/decisions/0150-a-live-test-that-fails-runs-twice.md).
import type { FileResults } from './results.ts';

/** If more files than this fail, a busy machine is not the reason. */
const filesMax = 3;

/** Suites without processes and sockets: a busy machine cannot make them fail. */
const pure = [
  'packages/raft-core',
  'packages/raft-sim',
  'packages/storage-fsm',
  'packages/replication',
  'packages/transit-engine',
  'packages/barrier',
];

/** Suites with artifacts or an engine of their own, which their scripts prepare. */
const prepared = ['test/release/', 'test/e2e/'];

/** Data that a node must not lose. A node may lose an election, a role, a connection or a message. */
const data =
  '(?:byte|chang|commit|data|disk|entr|epoch|event|every|history|index|key|none|nothing|record|tail|update|value|version|what|writ)\\w*';
/** Up to eight words of the same clause. */
const words = "(?:[ ,]+[\\w'’-]+){0,8}?[ ,]+";
const loses = '(?:lose|loses|losing|lost)';

/**
 * Words in the title or the error of a failure that a second run must not hide. It would draw another seed, and lost writes, leaks and
 * histories that are not linearizable are never an accident of timing.
 */
const never = new RegExp(
  `seed|lineari[sz]|acknowledg|surviv|leak|\\b(?:loss|losses|lossless|${loses}${words}${data}|${data}${words}${loses})\\b`,
  'i',
);

/** Returns whether a failure with this text must not run a second time. */
export const isFinal = (text: string): boolean => never.test(text);

/** Returns the files that may run a second time: all failed files, or none if one of them may not. */
export function mayRunTwice(files: readonly FileResults[]): readonly FileResults[] {
  const failed = files.filter(({ failures }) => failures.length > 0);
  const final = failed.some(
    ({ folder, file, failures }) =>
      pure.includes(folder) ||
      prepared.some((start) => file.startsWith(start)) ||
      !file.endsWith('.test.ts') ||
      failures.some(({ title, message }) => isFinal(`${title} ${message}`)),
  );
  return final || failed.length > filesMax ? [] : failed;
}

/** Returns `files`, in which the results in `again` replace the first results of the same file. */
export function withSecondRuns(files: readonly FileResults[], again: readonly FileResults[]): FileResults[] {
  const second = new Map(again.map((results) => [results.file, results]));
  return files.map((results) => second.get(results.file) ?? results);
}
