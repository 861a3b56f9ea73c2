// `npm run conformance`: both conformance suites against a fresh node. Prints the failed cases and the cases that wait for a later release.
import { runSuite, type Suite, waiting } from '../test/conformance/conformance.ts';
import { startAudited } from '../test/process/audited-server.ts';
import { Workbench } from '../test/process/live-server.ts';

const bench = new Workbench();
let unexpected = 0;
try {
  for (const suite of ['transit', 'system'] satisfies Suite[]) {
    const { server, rootToken, auditFile } = await startAudited(bench);
    const outcomes = await runSuite(suite, { url: server.url, token: rootToken, auditFile, args: process.argv.slice(2) });
    const list = waiting(suite);
    const failed = outcomes.filter(({ passed }) => !passed);
    for (const { id, detail } of failed) {
      const reason = list.get(id);
      if (reason === undefined) unexpected += 1;
      console.log(reason === undefined ? `FAIL   ${id}\n       ${detail}` : `waits  ${id} (${reason})`);
    }
    console.log(`${suite}: ${outcomes.length - failed.length} passed, ${failed.length} failed`);
  }
} finally {
  await bench.clean();
}
process.exit(unexpected === 0 ? 0 : 1);
