// @live
// A PKCS#11 token is unavailable for a while under load. Afterwards it works again without a restart of the node.
import { randomBytes } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { needsToken, softhsmLibrary, TokenFolder } from '../../packages/pkcs11/test/softhsm.ts';
import { until } from '../cluster/harness/until.ts';
import { base64, type LiveServer, processMs, Workbench } from '../process/live-server.ts';

describe('a PKCS#11 token that was unavailable', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  const pin = 'pin-of-the-token';
  let tokens: TokenFolder;
  let server: LiveServer;
  let rootToken: string;
  const call = (method: string, path: string, body?: object) => server.call(method, path, body, rootToken);
  const sign = () => call('POST', 'transit/sign/k', { input: base64('a message') });

  before(async function () {
    needsToken(this);
    tokens = new TokenFolder();
    tokens.addToken({ label: 'token', pin });
    const [folder, elsewhere] = [bench.folder(), bench.folder()];
    const [keyFile, configFile] = [join(elsewhere, 'seal.key'), join(elsewhere, 'transitd.json')];
    writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
    const config = {
      node_id: 'n1',
      data_dir: join(folder, 'data'),
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      seal: { type: 'static', key_id: 'k', key_file: keyFile },
      pkcs11_libraries: [{ name: 'softhsm', path: softhsmLibrary }],
    };
    writeFileSync(configFile, JSON.stringify(config));
    server = await bench.start({ dataDir: folder, command: ['server', '--config', configFile] });
    const founded = await server.call('POST', 'sys/init', { recovery_shares: 1, recovery_threshold: 1 }, null);
    rootToken = founded.string('root_token');
    await until('the node serves', async () => (await call('GET', 'sys/health')).status === 200);
    const key = { library: 'softhsm', token_label: 'token', pin, key_label: 'k', mechanism: 'CKM_ECDSA', any_mount: true };
    await call('POST', 'sys/managed-keys/pkcs11/k', { ...key, allow_generate_key: true });
    await call('POST', 'transit/keys/k', { type: 'managed_key', managed_key_name: 'k' });
  });
  after(async () => {
    await bench.clean();
    tokens?.remove();
  });

  it('signs when it is available again; meanwhile, requests that do not need it are served', async () => {
    expect((await sign()).status).to.equal(200);
    const [here, away] = [join(tokens.path, 'tokens'), join(tokens.path, 'away')];
    for (const calls of [1, 10]) {
      renameSync(here, away);
      for (let sent = 0; sent < calls; sent++) expect((await sign()).status).to.be.oneOf([400, 503]);
      expect((await call('POST', 'transit/keys/plain', {})).status).to.equal(200);
      renameSync(away, here);
      await until('the token signs again', async () => (await sign()).status === 200, { explain: () => server.stderr });
    }
  });
});
