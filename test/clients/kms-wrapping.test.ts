// @live
// The wrapper with which services protect their own root keys under a transit key, unchanged against a live node.
import { expect } from 'chai';
import { type LiveServer, Workbench } from '../process/live-server.ts';
import { build, runProgram } from './go-programs.ts';

describe('github.com/hashicorp/go-kms-wrapping/wrappers/transit/v2', () => {
  const bench = new Workbench();
  let server: LiveServer;

  before(async function () {
    await build(this, 'kms-wrapping');
    server = await bench.start({ dataDir: bench.folder() });
    const config = { ciphertext_prefix: 'vault' };
    expect((await server.call('POST', 'sys/mounts/team/keys', { type: 'transit', config })).status).to.equal(204);
  });
  after(() => bench.clean());

  for (const { mount, prefix } of [
    { mount: 'transit', prefix: 'svc' },
    { mount: 'team/keys', prefix: 'vault' },
  ])
    it(`uses the version as key id, and unwraps older values after a rotation, with the prefix ${prefix}`, async () => {
      const env = { TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken };
      const { code, stdout, stderr } = await runProgram('kms-wrapping', [mount], { env });
      expect(code, stderr).to.equal(0);
      expect(JSON.parse(stdout)).to.deep.equal({
        prefix,
        key_ids: ['v1', 'v2'],
        blob_ids: ['v1', 'v2'],
        opened: ['root key', 'root key'],
        wrong_key: 400,
        wrong_token: 403,
        not_allowed: 403,
      });
    });
});
