// Which failed files of tests run a second time (docs/decisions/0150-a-live-test-that-fails-runs-twice.md).
import { safety } from '../../test/safety.ts';
import type { FileResults } from './results.ts';

/** If more files than this fail, a busy machine is not the reason. */
const filesMax = 3;

/** Whether a failure is about safety, or names a seed: a second run would draw another one. */
const isFinal = (message: string): boolean => message.includes(safety) || /\bseed\b/i.test(message);

/** Returns the files that may run a second time: all failed files, or none if one of them may not. */
export function mayRunTwice(files: readonly FileResults[]): readonly FileResults[] {
  const failed = files.filter(({ failures }) => failures.length > 0);
  const final = failed.some(({ isLive, failures }) => !isLive || failures.some(({ message }) => isFinal(message)));
  return final || failed.length > filesMax ? [] : failed;
}

/** Returns `files`, in which the results in `again` replace the first results of the same file. */
export function withSecondRuns(files: readonly FileResults[], again: readonly FileResults[]): FileResults[] {
  const second = new Map(again.map((results) => [results.file, results]));
  return files.map((results) => second.get(results.file) ?? results);
}
