// @live
import { expect } from 'chai';
import { FakeProvider } from '../../packages/node/test/providers/fake-provider.ts';
import { processMs, Workbench } from '../process/live-server.ts';
import { runBlocks, shellBlocks } from './page.ts';

const page = 'docs/jwt.md';

describe(page, function () {
  this.timeout(processMs);
  const bench = new Workbench();
  after(() => bench.clean());

  it('has commands that exchange the token of a job for one of a role', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    const provider = await FakeProvider.start(bench.folder());
    try {
      provider.publish('one');
      const ran = await runBlocks(shellBlocks(page), {
        replace: { 'https://login.example.com': provider.url },
        files: { 'ca.pem': provider.ca, 'job.jwt': provider.signed('one') },
        env: { TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken },
      });
      expect(ran.code, ran.stdout + ran.stderr).to.equal(0);
      const token = ran.stdout.trimEnd().split('\n').at(-1) ?? '';
      const answer = await server.call('GET', 'auth/token/lookup-self', undefined, token);
      expect([answer.status, answer.at('data.policies')]).to.deep.equal([200, ['ci', 'default']]);
    } finally {
      await provider.end();
    }
  });
});
