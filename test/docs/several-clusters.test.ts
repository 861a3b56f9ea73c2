// @live
import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { processMs } from '../process/live-server.ts';
import { runBlocks, shellBlocks } from './page.ts';

const page = 'docs/sizing.md';

describe(page, function () {
  this.timeout(processMs);

  it('has commands that put two clusters behind one HAProxy, and that separate their keys and tokens', async () => {
    const blocks = shellBlocks(page, 'Several clusters');
    expect(blocks).to.have.length(3);
    // A loopback address that no other test uses, so that the ports of the page are free.
    const host = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
    const guarded = ["trap 'xargs -r kill < pids' ERR", ...blocks];
    const { code, stdout, stderr } = await runBlocks(guarded, { replace: { '127.0.0.1': host } });
    expect(code, `${stdout}${stderr}`).to.equal(0);
    expect(stdout).to.include('text of payments').and.to.include('text of orders');
    expect(stderr).to.match(/403|permission denied/);
  });
});
