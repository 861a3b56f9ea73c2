// @live
// The console of a node with gateway threads, through which its stream passes.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { until } from '../cluster/harness/until.ts';
import { processMs, Workbench } from '../process/live-server.ts';
import { tokenWith } from '../process/token-with.ts';
import { ConsoleBrowser, signIn } from './browser.ts';

describe('the console of a node with gateway threads', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let browser: ConsoleBrowser;
  before(async () => {
    browser = await ConsoleBrowser.launch();
  });
  afterEach(() => browser.closePages());
  after(async () => {
    await browser?.close();
    await bench.clean();
  });

  it('is live, ends with the token, and does not delay a stop of the node', async () => {
    const server = await bench.start({ dataDir: bench.folder(), env: { TRANSITD_WORKERS: '2' } });
    const right = 'path "sys/nodes" { capabilities = ["read"] }';
    const token = await tokenWith(server, right);
    const pageOf = async (withToken: string): Promise<Page> => {
      const page = await browser.open(server.url);
      await signIn(page, withToken);
      return page;
    };
    const [revoked, kept] = await Promise.all([pageOf(token), pageOf(server.rootToken)]);
    const commitIndex = kept.locator('.summary > div', { hasText: 'Commit index' }).locator('.fact');
    const before = await commitIndex.textContent();
    await server.call('POST', 'transit/keys/orders', {});
    await until('the page shows the new commit index', async () => (await commitIndex.textContent()) !== before);
    await server.call('POST', 'auth/token/revoke', { token });
    await revoked.getByText('Your token is no longer valid.').waitFor();
    expect((await server.stop()).code).to.equal(0);
    await kept.getByText('This node does not answer.').waitFor();
  });
});
