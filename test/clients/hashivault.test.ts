// @live
// The client with which cosign and other sigstore tools sign with transit keys, unchanged against a live node. It accepts only
// signatures that begin with `vault:`.
import { expect } from 'chai';
import { type LiveServer, Workbench } from '../process/live-server.ts';
import { build, runProgram } from './go-programs.ts';

describe('github.com/sigstore/sigstore/pkg/signature/kms/hashivault', () => {
  const bench = new Workbench();
  let server: LiveServer;

  before(async function () {
    await build(this, 'hashivault');
    server = await bench.start({ dataDir: bench.folder() });
    const config = { ciphertext_prefix: 'vault' };
    expect((await server.call('POST', 'sys/mounts/signing', { type: 'transit', config })).status).to.equal(204);
  });
  after(() => bench.clean());

  const outcomeOn = async (mount: string): Promise<unknown> => {
    const env = { VAULT_ADDR: server.url, VAULT_TOKEN: server.rootToken, TRANSIT_SECRET_ENGINE_PATH: mount };
    const { code, stdout, stderr } = await runProgram('hashivault', [], { env });
    expect(code, stderr).to.equal(0);
    return JSON.parse(stdout);
  };

  it('creates a key, signs, and verifies locally and remotely, on a mount with the prefix vault', async () => {
    expect(await outcomeOn('signing')).to.deep.equal({ signed: true, here: true, there: true, other: false });
  });

  it('cannot read signatures with the prefix svc', async () => {
    expect(await outcomeOn('transit')).to.deep.equal({ signed: 'illegal base64 data at input byte 3' });
  });
});
