// Adds up the results of a run's suites: each suite appends a line to one file (test/reporter.mjs), and the last line is their sum.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly pending: number;
}

export class Tally {
  readonly #folder = mkdtempSync(join(tmpdir(), 'transitd-tally-'));
  readonly #file = join(this.#folder, 'tally');

  constructor() {
    writeFileSync(this.#file, '');
  }

  /** The environment that makes a suite append its results. */
  get env(): NodeJS.ProcessEnv {
    return { TEST_TALLY: this.#file };
  }

  /** Returns the sum of all counts so far. */
  get counts(): Counts {
    const lines = readFileSync(this.#file, 'utf8')
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split(' ').map(Number));
    const sum = (column: number): number => lines.reduce((total, line) => total + (line[column] ?? 0), 0);
    return { passed: sum(0), failed: sum(1), pending: sum(2) };
  }

  close(): void {
    rmSync(this.#folder, { recursive: true });
  }
}

/**
 * Prints the last line and returns the exit code. Two cases must not look like success: a suite that crashed left no count but failed its
 * task, and a run without any count tested nothing.
 */
export function conclude({ passed, failed, pending }: Counts, { ended }: { readonly ended: boolean }): number {
  const died = failed === 0 && !ended ? 1 : 0;
  console.log(`${passed} passed, ${failed + died} failed${pending > 0 ? `, ${pending} skipped` : ''}`);
  return failed + died > 0 || passed === 0 ? 1 : 0;
}
