// Mocha's report, plus what a run of all suites adds up (scripts/test/results.ts): a script of npm that runs mocha also writes the results
// of each file of tests to `.turbo/SCRIPT.json`. Turborepo keeps that file with a cached suite.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { inspect } from 'node:util';
import mocha from 'mocha';

const root = resolve(import.meta.dirname, '..');
const script = process.env.npm_lifecycle_event;

const isLive = (file) => file !== undefined && existsSync(file) && /^\/\/ @live$/m.test(readFileSync(file, 'utf8'));

/** The stack of an error, and of its causes. */
const textOf = (error) =>
  error instanceof Error
    ? [error.stack, ...(error.cause === undefined ? [] : [`caused by: ${textOf(error.cause)}`])].join('\n')
    : inspect(error);

function endsWithoutWaiting() {
  console.error(`still open a minute after the last test: ${process.getActiveResourcesInfo().join(', ')}`);
  process.exit(1);
}

export default class ResultsReporter extends mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    // A failed test can leave a socket or a worker open, and would keep the whole run from its end.
    runner.once('end', () => setTimeout(endsWithoutWaiting, 60_000).unref());
    if (script === undefined) return;
    const files = new Map();
    const resultsOf = (test) => {
      const file = relative(root, test.file ?? process.cwd());
      if (!files.has(file))
        files.set(file, {
          folder: relative(root, process.cwd()),
          file,
          isLive: isLive(test.file),
          passed: 0,
          pending: 0,
          failures: [],
        });
      return files.get(file);
    };
    runner.on('pass', (test) => resultsOf(test).passed++);
    runner.on('pending', (test) => resultsOf(test).pending++);
    runner.on('fail', (test, error) => {
      resultsOf(test).failures.push({
        title: test.fullTitle(),
        message: textOf(error).slice(0, 4000),
      });
    });
    runner.once('end', () => {
      mkdirSync('.turbo', { recursive: true });
      writeFileSync(`.turbo/${script.replace(':', '-')}.json`, JSON.stringify([...files.values()]));
    });
  }
}
