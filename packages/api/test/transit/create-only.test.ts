import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { type Served, served } from '../served.ts';

const public_key = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'pem' });
const material = { type: 'rsa-2048', public_key };

describe('the capability create on a key', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served();
    await at.ask('POST transit/keys/present', { body: {} });
  });
  afterEach(() => at.close());

  const tokenWith = async (capabilities: readonly string[]): Promise<string> => {
    const policy = `path "transit/keys/*" { capabilities = ${JSON.stringify(capabilities)} }`;
    await at.ask('POST sys/policies/acl/p', { body: { policy } });
    return (await at.ask('POST auth/token/create', { body: { policies: ['p'], no_default_policy: true } })).body.auth
      .client_token;
  };
  const read = async (name: string) => (await at.ask(`GET transit/keys/${name}`)).body.data;

  const already = 'key present already existed; its settings were not changed';
  const exists = 'the import path cannot be used with an existing key; use import-version to rotate an existing imported key';
  const denied = { errors: ['permission denied'] };
  const ways = {
    create: { below: '', sent: { type: 'aes128-gcm96', exportable: true } },
    import: { below: '/import', sent: material },
  };
  for (const [way, capabilities, name, status, body] of [
    ['create', ['create'], 'absent', 200, undefined],
    ['create', ['create'], 'present', 403, denied],
    ['create', ['create', 'read', 'list', 'delete', 'sudo'], 'present', 403, denied],
    ['create', ['update'], 'absent', 200, undefined],
    ['create', ['update'], 'present', 200, { warnings: [already] }],
    ['create', ['create', 'update'], 'absent', 200, undefined],
    ['create', ['create', 'update'], 'present', 200, { warnings: [already] }],
    ['create', ['read', 'list', 'delete', 'sudo', 'patch'], 'absent', 403, denied],
    ['create', ['deny'], 'absent', 403, denied],
    ['import', ['create'], 'absent', 204, undefined],
    ['import', ['create'], 'present', 403, denied],
    ['import', ['update'], 'absent', 204, undefined],
    ['import', ['update'], 'present', 400, { errors: [exists] }],
    ['import', ['create', 'update'], 'present', 400, { errors: [exists] }],
    ['import', ['read', 'list', 'delete', 'sudo', 'patch'], 'absent', 403, denied],
  ] as const)
    it(`${way} of a name that is ${name} with ${capabilities}: ${status}`, async () => {
      const before = await read('present');
      const { below, sent } = ways[way];
      const token = await tokenWith(capabilities);
      const answer = await at.ask(`POST transit/keys/${name}${below}`, { token, body: sent });
      expect(answer.status).to.equal(status);
      if (body !== undefined && 'errors' in body) expect(answer.body).to.deep.equal(body);
      if (body !== undefined && 'warnings' in body) expect(answer.body.warnings).to.deep.equal(body.warnings);
      expect(await read('present')).to.deep.equal(before);
      const made = (await at.ask('GET transit/keys/absent')).status;
      expect(made).to.equal(name === 'absent' && status < 300 ? 200 : 404);
    });

  it('changes no key that exists by any other request', async () => {
    const token = await tokenWith(['create']);
    for (const [target, body] of [
      ['keys/present/config', { deletion_allowed: true }],
      ['keys/present/rotate', {}],
      ['keys/present/trim', { min_available_version: 1 }],
      ['keys/present/soft-delete-restore', {}],
      ['keys/present/versions/1/disable', {}],
      ['keys/present/import_version', { public_key }],
    ] as const)
      expect((await at.ask(`POST transit/${target}`, { token, body })).status, target).to.equal(403);
    expect(await read('present')).to.include({ latest_version: 1, deletion_allowed: false });
  });

  it('creates a name once, whoever is first', async () => {
    const token = await tokenWith(['create']);
    const create = async () => (await at.ask('POST transit/keys/raced', { token, body: {} })).status;
    const statuses = await Promise.all(Array.from({ length: 8 }, create));
    expect(statuses.sort()).to.deep.equal([200, ...Array.from({ length: 7 }, () => 403)]);
  });

  it('is judged with its parameter rules', async () => {
    const policy =
      'path "transit/keys/*" { capabilities = ["create"] denied_parameters = { exportable = [true] } required_parameters = ["type"] }';
    await at.ask('POST sys/policies/acl/p', { body: { policy } });
    const { auth } = (await at.ask('POST auth/token/create', { body: { policies: ['p'], no_default_policy: true } })).body;
    for (const [name, body, status] of [
      ['one', { type: 'hmac' }, 200],
      ['one', { type: 'hmac' }, 403],
      ['two', { type: 'hmac', exportable: true }, 403],
      ['two', {}, 403],
      ['two', { type: 'hmac', exportable: false }, 200],
    ] as const)
      expect((await at.ask(`POST transit/keys/${name}`, { token: auth.client_token, body })).status).to.equal(status);
  });
});
