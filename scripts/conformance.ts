// `npm run conformance [-- --storage etcd]`: both conformance suites against a fresh node. Prints the failed cases and the cases that wait
// for a later release. Other arguments go to the suites.
import { type LiveEtcd, liveEtcd } from '../packages/storage-etcd/test/live-etcd.ts';
import { runSuite, type Suite, waiting } from '../test/conformance/conformance.ts';
import { startAudited } from '../test/process/audited-server.ts';
import { Workbench } from '../test/process/live-server.ts';

const given = process.argv.slice(2);
const at = given.indexOf('--storage');
const [storage, args] = at < 0 ? ['raft', given] : [given[at + 1], given.toSpliced(at, 2)];
if (storage !== 'raft' && storage !== 'etcd') throw new Error('--storage is raft or etcd');

const bench = new Workbench();
let etcd: LiveEtcd | undefined;
let unexpected = 0;
try {
  for (const suite of ['transit', 'system'] satisfies Suite[]) {
    await etcd?.stop();
    etcd = storage === 'etcd' ? await liveEtcd() : undefined;
    const { server, rootToken, auditFile } = await startAudited(bench, { etcd });
    const outcomes = await runSuite(suite, { url: server.url, token: rootToken, auditFile, args });
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
  await etcd?.stop();
}
process.exit(unexpected === 0 ? 0 : 1);
