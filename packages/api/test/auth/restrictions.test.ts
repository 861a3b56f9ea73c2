import { expect } from 'chai';
import { type Served, served } from '../served.ts';

/** If a restriction is not stored, tokens may do more than its writer believes. So none that the peers know may be ignored. */
describe('a restriction under a name of the peers', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served({ trustedProxies: ['127.0.0.0/8'] });
    for (const type of ['userpass', 'approle', 'jwt', 'kubernetes']) await at.ask(`POST sys/auth/${type}`, { body: { type } });
  });
  afterEach(() => at.close());

  const block = '10.0.0.0/8';
  const jwt = { user_claim: 'sub', bound_audiences: 'here' };
  const kubernetes = { bound_service_account_names: 'a', bound_service_account_namespaces: 'b', audience: 'c' };
  for (const { path, body, older, read } of [
    { path: 'auth/token/roles/r', older: { bound_cidrs: block }, read: { token_bound_cidrs: [block] } },
    {
      path: 'auth/userpass/users/u',
      body: { password: 'x' },
      older: { bound_cidrs: block },
      read: { token_bound_cidrs: [block] },
    },
    { path: 'auth/userpass/users/u', body: { password: 'x' }, older: { num_uses: 3 }, read: { token_num_uses: 3 } },
    { path: 'auth/approle/role/r', older: { bound_cidrs: [block] }, read: { token_bound_cidrs: [block] } },
    { path: 'auth/approle/role/r', older: { num_uses: '3' }, read: { token_num_uses: 3 } },
    { path: 'auth/approle/role/r', older: { bound_cidr_list: block }, read: { secret_id_bound_cidrs: [block] } },
    { path: 'auth/jwt/role/r', body: jwt, older: { bound_cidrs: block }, read: { token_bound_cidrs: [block] } },
    { path: 'auth/jwt/role/r', body: jwt, older: { num_uses: 3 }, read: { token_num_uses: 3 } },
    { path: 'auth/kubernetes/role/r', body: kubernetes, older: { bound_cidrs: block }, read: { token_bound_cidrs: [block] } },
    { path: 'auth/kubernetes/role/r', body: kubernetes, older: { num_uses: 3 }, read: { token_num_uses: 3 } },
  ]) {
    const [newer] = Object.keys(read);
    const [name] = Object.keys(older);
    it(`${name} of ${path} is stored as ${newer}, which takes precedence and whose denial applies to both`, async () => {
      const written = await at.ask(`POST ${path}`, { body: { ...body, ...older } });
      expect(written.status, JSON.stringify(written.body)).to.equal(204); // a name that is ignored makes it a 200 with a warning
      expect((await at.ask(`GET ${path}`)).body.data).to.deep.include(read);
      await at.ask(`POST ${path}`, { body: { ...read, [String(name)]: name === 'num_uses' ? 9 : '192.0.2.0/24' } });
      expect((await at.ask(`GET ${path}`)).body.data).to.deep.include(read);
      const lifted = await at.ask(`POST ${path}`, { body: { [String(newer)]: name === 'num_uses' ? 0 : [], ...older } });
      expect(lifted.text).to.contain(`${newer} has no value, but ${name} has one`);
      expect((await at.ask(`GET ${path}`)).body.data).to.deep.include(read);

      const policy = `path "auth/*" { capabilities = ["create", "update"] denied_parameters = { "${newer}" = ["${block}", 3] } }`;
      await at.ask('POST sys/policies/acl/p', { body: { policy } });
      const token = (await at.ask('POST auth/token/create', { body: { policies: ['p'] } })).body.auth.client_token;
      expect((await at.ask(`POST ${path}`, { token, body: { ...body, ...older } })).status).to.equal(403);
    });
  }

  for (const { path, body, says } of [
    ...['token/roles/r', 'userpass/users/u', 'approle/role/r', 'jwt/role/r', 'kubernetes/role/r'].map((path) => ({
      path: `auth/${path}`,
      body: { ...jwt, ...kubernetes, password: 'x', token_strictly_bind_ip: 'true' },
      says: 'token_strictly_bind_ip is not supported',
    })),
    {
      path: 'auth/kubernetes/role/r',
      body: { ...kubernetes, bound_service_account_namespace_selector: '{"matchLabels":{"a":"b"}}' },
      says: 'bound_service_account_namespace_selector is not supported: .* list them in bound_service_account_namespaces',
    },
    { path: 'auth/userpass/users/u', body: { password: 'x', password_hash: 'y' }, says: 'password_hash is not supported' },
    { path: 'auth/userpass/users/u/password', body: { password_hash: 'y' }, says: 'password_hash is not supported' },
  ])
    it(`is refused, not ignored, if it does not exist here: ${says} by ${path}`, async () => {
      const answer = await at.ask(`POST ${path}`, { body });
      expect([answer.status, answer.text].join(' ')).to.match(new RegExp(`^400 .*${says}`));
      expect((await at.ask(`GET ${path.replace('/password', '')}`)).status).to.equal(404);
    });

  it('is refused, not ignored, in the query', async () => {
    for (const path of ['auth/token/roles/r', 'auth/userpass/users/u', 'auth/approle/role/r', 'auth/approle/role/r/policies']) {
      const answer = await at.ask(`POST ${path}?token_bound_cidrs=10.0.0.0/8&policies=p`, { body: { password: 'x' } });
      expect([answer.status, answer.text].join(' ')).to.match(
        /^400 .*the query has a parameter that this operation does not take/,
      );
    }
    expect((await at.ask('GET auth/userpass/users/u')).status).to.equal(404);
    const login = await at.ask('POST auth/userpass/login/u?password=x', { token: null, body: {} });
    expect(login.text).to.match(/the query has a parameter/);
  });

  it('may be sent if it is off', async () => {
    const body = { password: 'x', password_hash: '', token_strictly_bind_ip: false };
    expect((await at.ask('POST auth/userpass/users/u', { body })).status).to.equal(204);
  });

  it('refuses a login from elsewhere as one with wrong credentials', async () => {
    const from = (address: string) => ({ 'X-Forwarded-For': address });
    await at.ask('POST auth/userpass/users/u', { body: { password: 'x', bound_cidrs: block } });
    await at.ask('POST auth/approle/role/r', { body: { bound_cidr_list: block } });
    const { role_id } = (await at.ask('GET auth/approle/role/r/role-id')).body.data;
    const { secret_id } = (await at.ask('POST auth/approle/role/r/secret-id', { body: {} })).body.data;
    for (const [line, body, wrong] of [
      ['POST auth/userpass/login/u', { password: 'x' }, { password: 'y' }],
      ['POST auth/approle/login', { role_id, secret_id }, { role_id, secret_id: 'y' }],
    ] as const) {
      const login = (sent: object, address: string) => at.ask(line, { token: null, body: sent, headers: from(address) });
      expect((await login(body, '10.1.1.1')).status, line).to.equal(200);
      const [outside, mistaken] = [await login(body, '192.0.2.1'), await login(wrong, '10.1.1.1')];
      expect([outside.status, outside.text], line).to.deep.equal([400, mistaken.text]);
    }
  });
});
