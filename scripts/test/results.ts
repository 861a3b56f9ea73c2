// Adds up the results of a run's suites: test/reporter.mjs appends them to one file, and the last line of the run is their sum.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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

/** The results of one file of tests. Paths are relative to the root of the project. */
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

interface SuiteEnd {
  readonly folder: string;
  readonly ended: true;
}

export class Results {
  readonly #folder = mkdtempSync(join(tmpdir(), 'transitd-results-'));
  readonly #file = join(this.#folder, 'results');

  constructor() {
    writeFileSync(this.#file, '');
  }

  /** The environment that makes a suite append its results. */
  get env(): NodeJS.ProcessEnv {
    return { TEST_RESULTS: this.#file };
  }

  get files(): readonly FileResults[] {
    return this.#lines().filter((line): line is FileResults => 'file' in line);
  }

  /** The folders of the suites that reached their end, one for each suite. Suites that crashed are missing. */
  get ended(): readonly string[] {
    return this.#lines().flatMap((line) => ('ended' in line ? [line.folder] : []));
  }

  close(): void {
    rmSync(this.#folder, { recursive: true });
  }

  #lines(): (FileResults | SuiteEnd)[] {
    return readFileSync(this.#file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as FileResults | SuiteEnd);
  }
}

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

/**
 * Prints the last line and returns the exit code. Two cases must not look like success: a suite that crashed left no failure but did not
 * end, and a run without any result tested nothing.
 */
export function conclude({ passed, failed, pending }: Counts, { ended }: { readonly ended: boolean }): number {
  const died = failed === 0 && !ended ? 1 : 0;
  console.log(`${passed} passed, ${failed + died} failed${pending > 0 ? `, ${pending} skipped` : ''}`);
  return failed + died > 0 || passed === 0 ? 1 : 0;
}
