// Mocha's report, plus the tally that `npm test` adds up over all suites (a suite that crashes writes none).
import { appendFileSync } from 'node:fs';
import mocha from 'mocha';

export default class TallyReporter extends mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    runner.once('end', () => {
      const { passes, failures, pending } = runner.stats;
      if (process.env.TEST_TALLY) appendFileSync(process.env.TEST_TALLY, `${passes} ${failures} ${pending}\n`);
    });
  }
}
