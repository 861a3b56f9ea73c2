// Runs suites in queues: the suites of a queue run one after the other, and the queues run side by side. Live nodes wait for elections and
// timeouts; the suites that compute use that time. All have one priority: on a busy machine a suite with a lower one would stand still.
import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { type FileResults, Results, sum } from './results.ts';

export interface Suite {
  readonly name: string;
  /** A program, as a path from the root of the project, and its arguments. */
  readonly command: readonly [program: string, ...args: string[]];
  /** The folders in which mocha runs its tests. Absent: the exit code is the suite's only result, and counts as one test. */
  readonly folders?: readonly string[];
  /** After so many milliseconds it is ended, and what it printed until then is shown. */
  readonly limitMs?: number;
}

export interface SuiteResults {
  readonly files: readonly FileResults[];
  /** Whether a suite without folders succeeded. */
  readonly check?: boolean;
  /** False if one of its folders did not reach its end, or if its command failed without a failed test. */
  readonly ended: boolean;
}

const root = join(import.meta.dirname, '../..');

/** Four times as long as the longest suite needs on two idle cores. */
const LIMIT_MS = 45 * 60_000;

/** Runs the queues and returns the results of their suites. Prints the output of each suite when the suite ends. */
export async function runQueues(queues: readonly (readonly Suite[])[], env: NodeJS.ProcessEnv): Promise<readonly SuiteResults[]> {
  const ended = await Promise.all(
    queues.map(async (suites) => {
      const results: SuiteResults[] = [];
      for (const suite of suites) results.push(await runSuite(suite, env));
      return results;
    }),
  );
  return ended.flat();
}

async function runSuite(suite: Suite, env: NodeJS.ProcessEnv): Promise<SuiteResults> {
  const { name, folders } = suite;
  const results = new Results();
  const begin = performance.now();
  console.log(`${name}: begins`);
  const { ok, output } = await outputOf(suite, { ...env, ...results.env });
  const seconds = Math.round((performance.now() - begin) / 1000);
  process.stdout.write(
    Buffer.concat([Buffer.from(`\n${name}:\n`), output, Buffer.from(`\n${name}: ended after ${seconds} s\n`)]),
  );
  const { files, ended } = results;
  results.close();
  if (folders === undefined) return { files, check: ok, ended: true };
  const unfinished = folders.filter((folder) => !ended.includes(folder));
  for (const folder of unfinished) console.log(`${name}: ${folder} did not reach its end`);
  return { files, ended: unfinished.length === 0 && (ok || sum(files).failed > 0) };
}

/** Runs the command of a suite to its end, or to its limit. Returns whether it succeeded, and its output. */
function outputOf(
  { command: [program, ...args], limitMs = LIMIT_MS }: Suite,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly ok: boolean; readonly output: Buffer }> {
  return new Promise((done) => {
    const chunks: Buffer[] = [];
    const end = (ok: boolean, ...last: string[]): void => {
      clearTimeout(limit);
      done({ ok, output: Buffer.concat([...chunks, ...last.map((line) => Buffer.from(`${line}\n`))]) });
    };
    const child = spawn(resolve(root, program), args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env,
    });
    const limit = setTimeout(() => {
      child.kill();
      end(false, `ended by force: it did not end within ${limitMs / 1000} s`);
    }, limitMs);
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', (error) => end(false, error.message));
    child.on('close', (code) => end(code === 0));
  });
}
