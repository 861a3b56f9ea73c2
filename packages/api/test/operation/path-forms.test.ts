import { rootCertificates } from 'node:tls';
import { expect } from 'chai';
import { allRoutes } from '../../src/routes.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

// Every path with a case-insensitive name, with the verbs that read or change the object.
const user = { password: 'a long password', token_policies: ['default'] };
const policy = { policy: 'path "a" { capabilities = ["read"] }' };
const named: readonly (readonly [path: string, verbs: readonly string[], body: object])[] = [
  ['auth/up/users/NAME', ['GET', 'POST', 'DELETE'], user],
  ['auth/up/users/NAME/password', ['POST'], { password: 'another password' }],
  ['auth/up/users/NAME/policies', ['POST'], { token_policies: ['default'] }],
  ['auth/ar/role/NAME', ['GET', 'POST', 'DELETE'], {}],
  ['auth/ar/role/NAME/role-id', ['GET', 'POST'], { role_id: 'chosen' }],
  ['auth/ar/role/NAME/secret-id', ['POST', 'LIST'], {}],
  ['auth/ar/role/NAME/custom-secret-id', ['POST'], { secret_id: 'a long secret id' }],
  ['auth/ar/role/NAME/secret-id/lookup', ['POST'], { secret_id: 'x' }],
  ['auth/ar/role/NAME/secret-id/destroy', ['POST', 'DELETE'], { secret_id: 'x' }],
  ['auth/ar/role/NAME/secret-id-accessor/lookup', ['POST'], { secret_id_accessor: 'x' }],
  ['auth/ar/role/NAME/secret-id-accessor/destroy', ['POST', 'DELETE'], { secret_id_accessor: 'x' }],
  ['auth/jw/role/NAME', ['GET', 'POST', 'DELETE'], { role_type: 'jwt', bound_audiences: ['a'], user_claim: 'sub' }],
  [
    'auth/ku/role/NAME',
    ['GET', 'POST', 'DELETE'],
    { bound_service_account_names: 'a', bound_service_account_namespaces: 'b', audience: 'c' },
  ],
  ['auth/ce/certs/NAME', ['GET', 'POST', 'DELETE'], { certificate: rootCertificates[0] }],
  ['auth/team/up/users/NAME', ['GET', 'POST', 'DELETE'], user],
  ['auth/team/up/users/NAME/password', ['POST'], { password: 'another password' }],
  ['sys/policies/acl/NAME', ['GET', 'POST', 'DELETE'], policy],
  ['sys/policies/acl/team/NAME', ['GET', 'POST', 'DELETE'], policy],
  ['sys/policies/acl/NAME/team', ['GET', 'POST', 'DELETE'], policy],
  ['sys/policy/NAME/team', ['GET', 'POST', 'DELETE'], policy],
  ['sys/policy/NAME', ['GET', 'POST', 'DELETE'], policy],
];
const all = '"create", "read", "update", "delete", "list", "sudo"';

describe('the forms of a path', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served();
    for (const [path, type] of [
      ['up', 'userpass'],
      ['ar', 'approle'],
      ['jw', 'jwt'],
      ['ku', 'kubernetes'],
      ['ce', 'cert'],
      ['team/up', 'userpass'],
    ])
      expect((await at.ask(`POST sys/auth/${path}`, { body: { type } })).status).to.equal(204);
    for (const path of ['auth/up/users/admin', 'auth/ar/role/admin', 'auth/team/up/users/admin'])
      await at.ask(`POST ${path}`, { body: user });
    await at.ask('POST sys/policies/acl/admin', { body: policy });
  });
  afterEach(() => at.close());

  const tokenWith = async (text: string): Promise<string> => {
    expect((await at.ask('POST sys/policies/acl/tried', { body: { policy: text } })).status).to.equal(204);
    return (await at.ask('POST auth/token/create', { body: { policies: ['tried'], no_default_policy: true } })).body.auth
      .client_token;
  };
  const capabilities = async (token: string, path: string): Promise<readonly string[]> =>
    (await at.ask('POST sys/capabilities', { body: { token, paths: [path] } })).body.data[path];

  for (const [path, verbs, body] of named) {
    it(`are decided together at ${path}: a denial of either form wins, also in the reported capabilities`, async () => {
      for (const denied of ['admin', 'Admin']) {
        const token = await tokenWith(
          `path "*" { capabilities = [${all}] } path "${path.replace('NAME', denied)}" { capabilities = ["deny"] }
           path "${path.replace('NAME', denied)}/" { capabilities = ["deny"] }`,
        );
        for (const [verb, name] of verbs.flatMap((verb) => ['admin', 'Admin', 'ADMIN'].map((name) => [verb, name] as const))) {
          const written = path.replace('NAME', name);
          const list = verb === 'LIST' ? '?list=true' : '';
          const answer = await at.ask(`${list === '' ? verb : 'GET'} ${written}${list}`, {
            token,
            ...(verb === 'POST' && { body }),
          });
          expect(answer.status, `${verb} ${written}, denied ${denied}`).to.equal(403);
        }
        for (const name of ['admin', 'Admin', 'ADMIN'])
          expect(await capabilities(token, path.replace('NAME', name)), `${name}, denied ${denied}`).to.deep.equal(['deny']);
        const other = path.replace('NAME', 'Other');
        expect(await capabilities(token, other)).to.not.include('deny');
      }
    });

    it(`both forms of the name have to be allowed at ${path}`, async () => {
      const token = await tokenWith(`path "${path.replace('NAME', 'Admin')}" { capabilities = [${all}] }`);
      const written = path.replace('NAME', 'Admin');
      const post = verbs.includes('POST') ? 'POST' : 'GET';
      expect((await at.ask(`${post} ${written}`, { token, ...(post === 'POST' && { body }) })).status).to.equal(403);
      expect(await capabilities(token, written)).to.deep.equal(['deny']);
    });
  }

  it('include the whole: a denied user denies its parts, and a denied policy denies its older path', async () => {
    const token = await tokenWith(
      `path "*" { capabilities = [${all}] } path "auth/up/users/admin" { capabilities = ["deny"] }
       path "auth/ar/role/admin" { capabilities = ["deny"] } path "sys/policies/acl/admin" { capabilities = ["deny"] }
       path "sys/policies/acl/Team/Admin" { capabilities = ["deny"] }`,
    );
    for (const [path, body] of [
      ['auth/up/users/admin/password', { password: 'another password' }],
      ['auth/up/users/Admin/policies', { token_policies: ['root'] }],
      ['auth/ar/role/ADMIN/role-id', { role_id: 'chosen' }],
      ['sys/policy/admin', policy],
      ['sys/policy/aDmin', policy],
      ['sys/policy/team/admin', policy],
    ] as const) {
      expect((await at.ask(`POST ${path}`, { token, body })).status, path).to.equal(403);
      expect(await capabilities(token, path), path).to.not.include('update');
    }
    expect((await at.ask('POST auth/up/users/other', { token, body: user })).status).to.equal(204);
    expect((await at.ask('POST auth/up/users/other/password', { token, body: { password: 'another one' } })).status).to.equal(
      204,
    );
  });

  for (const [denied, asked] of [
    ['transit/cmac/c/8', 'transit/cmac/c/0x8'],
    ['transit/cmac/c/16', 'transit/cmac/c/0'],
    ['transit/random/platform/32', 'transit/random/32'],
    ['transit/random/32', 'transit/random/platform/+32'],
    ['transit/random/seal', 'transit/random/all'],
    ['sys/tools/random/seal', 'sys/tools/random/all'],
    ['sys/tools/random/seal/32', 'sys/tools/random/all/0x20'],
    ['sys/tools/random/32', 'sys/tools/random/0x20'],
    ['transit/export/encryption-key/k/1', 'transit/export/encryption-key/k/v1'],
    ['transit/export/encryption-key/k/v1', 'transit/export/encryption-key/k/01'],
    ['transit/byok-export/d/k/1', 'transit/byok-export/d/k/v1'],
  ] as const)
    it(`include ${asked} where ${denied} is denied, also in the reported capabilities`, async () => {
      await at.ask('POST transit/keys/c', { body: { type: 'aes128-cmac' } });
      await at.ask('POST transit/keys/k', { body: { exportable: true } });
      const token = await tokenWith(
        `path "*" { capabilities = ["read", "update"] } path "${denied}" { capabilities = ["deny"] }`,
      );
      const verb = asked.includes('export') ? 'GET' : 'POST';
      const answer = await at.ask(`${verb} ${asked}`, { token, ...(verb === 'POST' && { body: { input: 'eA==' } }) });
      expect(answer.status).to.equal(403);
      expect(await capabilities(token, asked)).to.not.include(verb === 'GET' ? 'read' : 'update');
      expect(await capabilities(token, 'transit/cmac/c/12')).to.deep.equal(['read', 'update']);
    });

  for (const base of ['transit', 'sys/tools'])
    it(`of ${base}/random with the default of a value are no denial of another value in the body`, async () => {
      const policy = `path "*" { capabilities = ["update"] } path "${base}/random/32" { capabilities = ["deny"] }`;
      const token = await tokenWith(`${policy} path "${base}/random/platform" { capabilities = ["deny"] }`);
      const status = async (path: string, body: object) => (await at.ask(`POST ${base}/${path}`, { token, body })).status;
      expect(await status('random/all', { bytes: 5 })).to.equal(200);
      expect(await status('random/5', { source: 'all' })).to.equal(200);
      expect(await status('random/all', {})).to.equal(403);
      expect(await status('random/5', {})).to.equal(403);
    });

  it('count as one path for quotas, whichever form a quota or a request uses', async () => {
    await at.ask('POST sys/quotas/rate-limit/q', { body: { path: 'auth/up/login/Admin', rate: 1, interval: '1m' } });
    expect((await at.ask('GET sys/quotas/rate-limit/q')).body.data.path).to.equal('auth/up/login/admin');
    const login = async (name: string) =>
      (await at.ask(`POST auth/up/login/${name}`, { token: null, body: { password: 'x' } })).status;
    expect(await login('admin')).to.equal(400);
    for (const name of ['ADMIN', 'admin', 'aDmin']) expect(await login(name), name).to.equal(429);
  });

  it('count as one path for exempt paths', async () => {
    const login = async (name: string) =>
      (await at.ask(`POST auth/up/login/${name}`, { token: null, body: { password: 'x' } })).status;
    await at.ask('POST sys/quotas/rate-limit/q', { body: { path: 'auth/up/login/admin', rate: 1, interval: '1m' } });
    expect([await login('admin'), await login('Admin')]).to.deep.equal([400, 429]);
    await at.ask('POST sys/quotas/config', { body: { rate_limit_exempt_paths: ['auth/up/login/ADM*'] } });
    expect((await at.ask('GET sys/quotas/config')).body.data.rate_limit_exempt_paths).to.deep.equal(['auth/up/login/adm*']);
    expect([await login('admin'), await login('Admin')]).to.deep.equal([400, 400]);
  });

  it('are declared for every path with the name of a policy or a name in an auth method', () => {
    const routes = allRoutes(new TestMetrics());
    const without = routes.filter(
      ({ path, names }) =>
        (/^auth\/\*method\/.*:name/.test(path) || /^sys\/polic.*[:*]name/.test(path)) && names?.['name']?.('Admin') !== 'admin',
    );
    expect(without.map(({ path }) => path)).to.deep.equal([]);
    expect(routes.filter(({ names }) => names !== undefined).length).to.be.at.least(30);
  });
});
