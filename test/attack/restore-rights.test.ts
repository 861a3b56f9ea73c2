// @live
// A token that has `update` but not `sudo` on the path of a restore must not restore a snapshot.
import { expect } from 'chai';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';

describe('restoring a snapshot', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
  });
  after(() => bench.clean());

  for (const path of ['sys/storage/raft/snapshot', 'sys/storage/raft/snapshot-force']) {
    it(`at ${path} is refused without sudo, whatever the body`, async () => {
      const policy = `path "${path}" { capabilities = ["create", "update"] }`;
      await server.call('POST', 'sys/policies/acl/operator', { policy });
      const made = await server.call('POST', 'auth/token/create', { policies: ['operator'] });
      const refused = await server.call('POST', path, { anything: 'at all' }, made.string('auth.client_token'));
      expect(refused.status).to.equal(403);
      expect((await server.call('POST', path, { anything: 'at all' })).status, 'root').to.equal(400);
    });
  }
});
