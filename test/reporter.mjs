// Mocha's report, plus what a run of all suites adds up (scripts/test/results.ts): one line a file of tests, and one when the suite has
// ended.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { inspect } from 'node:util';
import mocha from 'mocha';

const root = resolve(import.meta.dirname, '..');

const isLive = (file) => file !== undefined && existsSync(file) && /^\/\/ @live$/m.test(readFileSync(file, 'utf8'));

function endsWithoutWaiting() {
  console.error(`still open a minute after the last test: ${process.getActiveResourcesInfo().join(', ')}`);
  process.exit(1);
}

export default class ResultsReporter extends mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    // A failed test can leave a socket or a worker open, and would keep the whole run from its end.
    runner.once('end', () => setTimeout(endsWithoutWaiting, 60_000).unref());
    if (!process.env.TEST_RESULTS) return;
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
        message: inspect(error).slice(0, 4000),
      });
    });
    runner.once('end', () => {
      const lines = [...files.values(), { folder: relative(root, process.cwd()), ended: true }];
      appendFileSync(process.env.TEST_RESULTS, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    });
  }
}
