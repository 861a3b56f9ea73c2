import { expect } from 'chai';
import { approle } from '../../src/auth/approle/method.ts';
import { type Served, served } from '../served.ts';

const role = 'auth/ar/role/web';

describe('a field of an approle role at its own path', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served();
    await at.ask('POST sys/auth/ar', { body: { type: 'approle' } });
    await at.ask(`POST ${role}`, { body: { token_policies: ['a'], token_ttl: 60, secret_id_bound_cidrs: '10.0.0.0/8' } });
  });
  afterEach(() => at.close());

  for (const { path, body, read, left } of [
    {
      path: 'policies',
      body: { token_policies: ['B', 'a'] },
      read: { token_policies: ['a', 'b'], policies: ['a', 'b'] },
      left: { token_policies: [], policies: [] },
    },
    {
      path: 'policies',
      body: { policies: 'x,y' },
      read: { token_policies: ['x', 'y'], policies: ['x', 'y'] },
      left: { token_policies: [], policies: [] },
    },
    { path: 'bind-secret-id', body: { bind_secret_id: false }, read: { bind_secret_id: false }, left: { bind_secret_id: true } },
    {
      path: 'secret-id-num-uses',
      body: { secret_id_num_uses: '5' },
      read: { secret_id_num_uses: 5 },
      left: { secret_id_num_uses: 0 },
    },
    { path: 'secret-id-ttl', body: { secret_id_ttl: '10m' }, read: { secret_id_ttl: 600 }, left: { secret_id_ttl: 0 } },
    {
      path: 'secret-id-bound-cidrs',
      body: { secret_id_bound_cidrs: ['127.0.0.0/8'] },
      read: { secret_id_bound_cidrs: ['127.0.0.0/8'] },
      left: { secret_id_bound_cidrs: [] },
    },
    {
      path: 'bound-cidr-list',
      body: { bound_cidr_list: '127.0.0.0/8' },
      read: { bound_cidr_list: ['127.0.0.0/8'] },
      left: { bound_cidr_list: [] },
    },
    {
      path: 'token-bound-cidrs',
      body: { token_bound_cidrs: '127.0.0.0/8' },
      read: { token_bound_cidrs: ['127.0.0.0/8'] },
      left: { token_bound_cidrs: [] },
    },
    { path: 'token-num-uses', body: { token_num_uses: 3 }, read: { token_num_uses: 3 }, left: { token_num_uses: 0 } },
    { path: 'token-ttl', body: { token_ttl: '5m' }, read: { token_ttl: 300 }, left: { token_ttl: 0 } },
    { path: 'token-max-ttl', body: { token_max_ttl: 900 }, read: { token_max_ttl: 900 }, left: { token_max_ttl: 0 } },
    {
      path: 'period',
      body: { token_period: '1h' },
      read: { token_period: 3600, period: 3600 },
      left: { token_period: 0, period: 0 },
    },
    { path: 'period', body: { period: 60 }, read: { token_period: 60, period: 60 }, left: { token_period: 0, period: 0 } },
  ])
    it(`${path} is written with ${JSON.stringify(body)}, read and reset, while other fields keep their values`, async () => {
      const member = path === 'bound-cidr-list' ? 'secret_id_bound_cidrs' : Object.keys(read)[0];
      const others = async () => {
        const { data } = (await at.ask(`GET ${role}`)).body;
        return Object.fromEntries(Object.entries(data).filter(([name]) => name !== member));
      };
      const before = await others();
      expect((await at.ask(`POST ${role}/${path}`, { body })).status).to.equal(204);
      expect((await at.ask(`GET ${role}/${path}`)).body.data).to.deep.equal(read);
      expect((await at.ask(`DELETE ${role}/${path}`)).status).to.equal(204);
      expect((await at.ask(`GET ${role}/${path}`)).body.data).to.deep.equal(left);
      expect(await others()).to.deep.equal(before);
      expect((await at.ask(`POST ${role}/${path}`, { body: {} })).status, 'nothing is named').to.equal(400);
      expect((await at.ask(`GET auth/ar/role/none/${path}`)).status).to.equal(404);
      expect((await at.ask(`POST auth/ar/role/none/${path}`, { body })).status).to.equal(404);
      expect((await at.ask(`DELETE auth/ar/role/none/${path}`)).status).to.equal(204);
      expect((await at.ask('GET auth/ar/role/none')).status, 'no role is made').to.equal(404);
    });

  it('is validated as in the whole role', async () => {
    expect((await at.ask(`POST ${role}/token-max-ttl`, { body: { token_max_ttl: 30 } })).status).to.equal(400);
    expect((await at.ask(`POST ${role}/policies`, { body: { token_policies: 'root' } })).status).to.equal(400);
    expect((await at.ask(`POST ${role}/bind-secret-id`, { body: { bind_secret_id: false } })).status).to.equal(204);
    expect((await at.ask(`DELETE ${role}/secret-id-bound-cidrs`)).status, 'nothing would bind a login').to.equal(400);
  });

  it('requires bind_secret_id of a role before its secret IDs are created', async () => {
    await at.ask(`POST ${role}`, { body: { bind_secret_id: false, token_bound_cidrs: '127.0.0.1/32' } });
    for (const [path, body] of [
      ['secret-id', {}],
      ['custom-secret-id', { secret_id: 'chosen' }],
    ] as const) {
      const { status, body: answer } = await at.ask(`POST ${role}/${path}`, { body });
      expect([status, answer.errors], path).to.deep.equal([400, ['bind_secret_id is not set on the role']]);
      expect((await at.ask(`GET ${role}/secret-id?list=true`)).status).to.equal(404);
    }
    await at.ask(`POST ${role}/bind-secret-id`, { body: { bind_secret_id: true } });
    expect((await at.ask(`POST ${role}/secret-id`, { body: {} })).status).to.equal(200);
  });

  it('reports that secret IDs are never local; exists only for approle', async () => {
    expect((await at.ask(`GET ${role}/local-secret-ids`)).body.data).to.deep.equal({ local_secret_ids: false });
    await at.ask('POST sys/auth/j', { body: { type: 'jwt' } });
    expect((await at.ask('GET auth/j/role/web/token-ttl')).status).to.equal(404);
  });

  it('requires the capability on its own path', async () => {
    await at.ask('POST sys/policies/acl/p', { body: { policy: `path "${role}/token-ttl" { capabilities = ["read"] }` } });
    const token = (await at.ask('POST auth/token/create', { body: { policies: ['p'] } })).body.auth.client_token;
    expect((await at.ask(`GET ${role}/token-ttl`, { token })).status).to.equal(200);
    expect((await at.ask(`POST ${role}/token-ttl`, { token, body: { token_ttl: 1 } })).status).to.equal(403);
    expect((await at.ask(`DELETE ${role}/token-ttl`, { token })).status).to.equal(403);
    expect((await at.ask(`GET ${role}/policies`, { token })).status).to.equal(403);
  });

  it('is denied if the whole role, its other path or its alias is denied', async () => {
    const policy = `
      path "auth/ar/role/+/*" { capabilities = ["read", "update", "delete"] }
      path "auth/ar/role/Admin" { capabilities = ["deny"] }
      path "${role}/secret-id-bound-cidrs" { capabilities = ["deny"] }
      path "${role}/policies" { capabilities = ["update"] denied_parameters = { "token_policies" = ["b"] } }`;
    await at.ask('POST sys/policies/acl/p', { body: { policy } });
    const token = (await at.ask('POST auth/token/create', { body: { policies: ['p'] } })).body.auth.client_token;
    const status = async (line: string, body: object = {}) => (await at.ask(line, { token, body })).status;
    await at.ask('POST auth/ar/role/admin', { body: { token_policies: ['a'] } });
    expect(await status('POST auth/ar/role/admin/policies', { token_policies: ['b'] })).to.equal(403);
    expect(await status('POST auth/ar/role/aDmin/policies', { policies: ['b'] })).to.equal(403);
    expect(await status('DELETE auth/ar/role/admin/token-ttl')).to.equal(403);
    expect(await status(`POST ${role}/bound-cidr-list`, { bound_cidr_list: '127.0.0.0/8' })).to.equal(403);
    expect((await at.ask(`GET ${role}/bound-cidr-list`, { token })).status).to.equal(403);
    expect(await status(`POST ${role}/policies`, { token_policies: ['b'] })).to.equal(403);
    expect(await status(`POST ${role}/policies`, { policies: ['b'] })).to.equal(403);
    expect(await status(`POST ${role}/policies`, { policies: ['c'] })).to.equal(204);
    expect(await status(`POST ${role}/token-ttl`, { token_ttl: 1 })).to.equal(204);
  });

  const asDenied = async (denied: string) => {
    const policy = `path "auth/ar/role/*" { capabilities = ["create", "read", "update", "delete"] }
      path "${denied}" { capabilities = ["deny"] }`;
    await at.ask('POST sys/policies/acl/p', { body: { policy } });
    const token = (await at.ask('POST auth/token/create', { body: { policies: ['p'] } })).body.auth.client_token;
    return async (line: string, body: object = {}) => (await at.ask(line, { token, body })).status;
  };

  it('is denied at its other path if the denial writes the name of the role with capitals', async () => {
    const cidrs = { bound_cidr_list: '127.0.0.0/8', secret_id_bound_cidrs: '127.0.0.0/8' };
    for (const [denied, twin] of [
      ['secret-id-bound-cidrs', 'bound-cidr-list'],
      ['bound-cidr-list', 'secret-id-bound-cidrs'],
    ]) {
      const status = await asDenied(`auth/ar/role/Web/${denied}`);
      for (const name of ['web', 'Web', 'WEB']) {
        expect(await status(`POST auth/ar/role/${name}/${twin}`, cidrs), `${name} ${twin}`).to.equal(403);
        expect(await status(`POST auth/ar/role/${name}/token-ttl`, { token_ttl: 1 })).to.equal(204);
      }
    }
  });

  for (const [at, { POST: operation }] of Object.entries(approle.paths)) {
    if (at === 'role/:name' || operation?.name.endsWith('-write') !== true) continue;
    const path = at.split('/').at(-1) ?? '';
    for (const member of Object.keys(operation.handler.takes).filter((member) => member !== 'name'))
      it(`is denied in a write of the whole role with ${member} if ${path} is denied`, async () => {
        for (const name of ['web', 'Web']) {
          const status = await asDenied(`auth/ar/role/${name}/${path}`);
          expect(await status(`POST ${role}`, { [member]: '1' })).to.equal(403);
          expect(await status('POST auth/ar/role/other', { token_policies: [] })).to.equal(204);
        }
      });
  }

  it('does not deny a write of the whole role without it', async () => {
    const status = await asDenied(`${role}/policies`);
    expect(await status(`POST ${role}`, { token_ttl: 5 })).to.equal(204);
    expect(await status(`POST ${role}`, { policies: ['b'] })).to.equal(403);
  });

  it('of a user is denied in a write of the whole user', async () => {
    await at.ask('POST sys/auth/up', { body: { type: 'userpass' } });
    const policy = `path "auth/up/users/*" { capabilities = ["create", "update"] }
      path "auth/up/users/Ada/password" { capabilities = ["deny"] } path "auth/up/users/bob/policies" { capabilities = ["deny"] }`;
    await at.ask('POST sys/policies/acl/p', { body: { policy } });
    const token = (await at.ask('POST auth/token/create', { body: { policies: ['p'] } })).body.auth.client_token;
    const status = async (user: string, body: object) => (await at.ask(`POST auth/up/users/${user}`, { token, body })).status;
    const password = 'a long password';
    expect([await status('ada', { password }), await status('aDa', { password })]).to.deep.equal([403, 403]);
    expect([await status('bob', { password }), await status('bob', { password, policies: 'a' })]).to.deep.equal([204, 403]);
  });
});
