// @live
import { type LiveEtcd, liveEtcd } from '../../../packages/storage-etcd/test/live-etcd.ts';
import type { Suite } from '../../conformance/conformance.ts';
import { passes } from '../../conformance/passes.ts';
import { startAudited } from '../../process/audited-server.ts';
import { processMs, Workbench } from '../../process/live-server.ts';

describe('conformance of a node on etcd', () => {
  const bench = new Workbench();
  let etcd: LiveEtcd | undefined;
  afterEach(async () => {
    await bench.clean();
    await etcd?.stop();
    etcd = undefined;
  });

  for (const suite of ['transit', 'system'] satisfies Suite[])
    it(`passes the same ${suite} cases with its records in etcd`, async function () {
      this.timeout(2 * processMs);
      etcd = await liveEtcd();
      await passes(suite, await startAudited(bench, { etcd }), { mayStall: true });
    });
});
