// @live
import { startAudited } from '../process/audited-server.ts';
import { processMs, Workbench } from '../process/live-server.ts';
import type { Suite } from './conformance.ts';
import { passes } from './passes.ts';

describe('conformance', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  for (const suite of ['transit', 'system'] satisfies Suite[])
    it(`passes every ${suite} case except the listed ones, and each listed case really fails`, async function () {
      this.timeout(2 * processMs);
      const audited = await startAudited(bench, { settings: { workers: 1 } });
      await audited.server.log(/a gateway thread listens/);
      await passes(suite, audited);
    });
});
