// @live
// `null` instead of a string is read as an empty string, as in Vault and OpenBao. It never grants additional rights.
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';

describe('null instead of a string', () => {
  const bench = new Workbench();
  after(() => bench.clean());
  let server: LiveServer;

  before(async function () {
    this.timeout(processMs);
    server = await bench.launch({ dataDir: bench.folder() }).ready();
    expect((await server.call('POST', 'transit/keys/k', {})).status).to.be.oneOf([200, 204]);
    expect((await server.call('POST', 'sys/auth/approle', { type: 'approle' })).status).to.equal(204);
    expect((await server.call('POST', 'sys/auth/userpass', { type: 'userpass' })).status).to.equal(204);
    expect((await server.call('POST', 'auth/userpass/users/amy', { password: 'p' })).status).to.equal(204);
  });

  it('counts as an empty string to encrypt and to hash', async () => {
    const encrypted = await server.call('POST', 'transit/encrypt/k', { plaintext: null });
    const ciphertext = encrypted.string('data.ciphertext');
    expect((await server.call('POST', 'transit/decrypt/k', { ciphertext })).at('data.plaintext')).to.equal('');
    const hashed = await server.call('POST', 'sys/tools/hash', { input: null });
    expect(hashed.at('data.sum')).to.equal(createHash('sha256').digest('hex'));
  });

  for (const [path, body] of [
    ['transit/keys/other', { type: null }],
    ['transit/decrypt/k', { ciphertext: null }],
    ['auth/userpass/login/amy', { password: null }],
    ['auth/userpass/users/bob', { password: null }],
    ['auth/userpass/users/amy', { password: null }],
    ['auth/userpass/users/amy/password', { password: null }],
    ['auth/approle/login', { role_id: null, secret_id: null }],
    ['auth/token/revoke', { token: null }],
    ['auth/token/revoke-accessor', { accessor: null }],
    ['sys/wrapping/unwrap', { token: null }],
    ['sys/wrapping/rewrap', { token: null }],
  ] as const)
    it(`is refused by ${path} like an empty string: ${JSON.stringify(body)}`, async () => {
      expect((await server.call('POST', path, body)).status).to.equal(400);
    });

  it('does not set a role id, and does not override the older field for policies', async () => {
    expect((await server.call('POST', 'auth/approle/role/web', { role_id: null })).status).to.equal(204);
    const before = (await server.call('GET', 'auth/approle/role/web/role-id')).string('data.role_id');
    expect((await server.call('POST', 'auth/approle/role/web', { role_id: null })).status).to.equal(204);
    expect((await server.call('GET', 'auth/approle/role/web/role-id')).string('data.role_id')).to.equal(before);
    const rules = 'path "a" { capabilities = ["deny"] }';
    expect((await server.call('POST', 'sys/policy/p', { policy: null, rules })).status).to.equal(204);
    expect((await server.call('GET', 'sys/policies/acl/p')).string('data.policy')).to.equal(rules);
  });
});
