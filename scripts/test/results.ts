// The results of a run's tasks: test/reporter.mjs writes those of each suite, and the last line of the run is their sum.
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly pending: number;
}

export interface Failure {
  readonly title: string;
  /** The error with its stack, at most 4,000 characters. */
  readonly message: string;
}

/** The results of one file of tests, or of a task without tests, which is one case. Paths are relative to the root of the project. */
export interface FileResults {
  /** The folder in which its suite was started. */
  readonly folder: string;
  readonly file: string;
  /** Whether the file has a line `// @live`: its tests need processes or sockets, so a busy machine can make them fail. */
  readonly isLive: boolean;
  readonly passed: number;
  readonly pending: number;
  readonly failures: readonly Failure[];
}

/** A task that has ended, as the summary of Turborepo describes it. */
export interface EndedTask {
  readonly taskId: string;
  /** Relative to the root of the project. */
  readonly directory: string;
  readonly resolvedTaskDefinition: { readonly outputs: readonly string[] };
  readonly execution?: { readonly exitCode: number | null };
}

/** Returns the file with the results of the task's suite; undefined for a task that runs no suite. */
export const resultsFile = ({ resolvedTaskDefinition: { outputs } }: EndedTask): string | undefined =>
  outputs.find((path) => path.startsWith('.turbo/'));

/**
 * Returns the results of a task. Two ends must not look like success: of a suite that wrote no results because it crashed, and of a command
 * that failed without a failed test.
 * @param written - the results that its suite wrote, if it has reached its end
 */
export function resultsOf(task: EndedTask, written: readonly FileResults[] | undefined): readonly FileResults[] {
  const { taskId, directory, execution } = task;
  const exitCode = execution?.exitCode;
  const own = (failures: readonly Failure[]): FileResults => {
    const passed = failures.length === 0 ? 1 : 0;
    return { folder: directory, file: taskId, isLive: false, passed, pending: 0, failures };
  };
  const failed = (title: string): FileResults => own([{ title, message: `exit code ${exitCode}` }]);
  if (resultsFile(task) === undefined) return [exitCode === 0 ? own([]) : failed('failed')];
  if (written === undefined) return [failed('did not reach its end')];
  if (exitCode === 0 || sum(written).failed > 0) return written;
  return [...written, failed('failed without a failed test')];
}

/**
 * Returns a failure for each task that has not ended, because the run was ended before, by its time limit or by a signal. Turborepo reports
 * only the others then, and no error.
 * @param asked - ids of tasks
 */
export const unended = (asked: readonly string[], tasks: readonly EndedTask[]): readonly FileResults[] =>
  asked
    .filter((id) => !tasks.some(({ taskId }) => taskId === id))
    .map((file) => {
      const failures = [{ title: 'did not end', message: 'the run was ended before' }];
      return { folder: '.', file, isLive: false, passed: 0, pending: 0, failures };
    });

export function sum(files: readonly FileResults[]): Counts {
  const total = (count: (file: FileResults) => number): number => files.reduce((before, file) => before + count(file), 0);
  return {
    passed: total(({ passed }) => passed),
    failed: total(({ failures }) => failures.length),
    pending: total(({ pending }) => pending),
  };
}

/** Prints the failures of a run once more, since the report of a suite is thousands of lines above the end. */
export function printFailures(files: readonly FileResults[], heading: string): void {
  const failed = files.filter(({ failures }) => failures.length > 0);
  if (failed.length === 0) return;
  console.log(`\n${heading}`);
  for (const { file, failures } of failed)
    for (const { title, message } of failures) console.log(`  ${file}: ${title}\n    ${message.replaceAll('\n', '\n    ')}`);
  console.log('');
}
