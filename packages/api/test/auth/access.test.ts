import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { type Served, served } from '../served.ts';

describe('the endpoints of access', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served({ trustedProxies: ['127.0.0.0/8'] });
  });
  afterEach(() => at.close());

  const tokenWith = async (policy: string, asked = {}): Promise<string> => {
    await at.ask('POST sys/policies/acl/p', { body: { policy } });
    return (await at.ask('POST auth/token/create', { body: { policies: ['p'], no_default_policy: true, ...asked } })).body.auth
      .client_token;
  };
  const from = (address: string) => ({ 'X-Forwarded-For': address });

  it('accept a token only from its bound CIDR blocks', async () => {
    await at.ask('POST auth/token/roles/r', { body: { token_bound_cidrs: '10.0.0.0/8', allowed_policies: 'default' } });
    const { auth } = (await at.ask('POST auth/token/create/r', { body: {} })).body;
    const self = async (address: string) =>
      (await at.ask('GET auth/token/lookup-self', { token: auth.client_token, headers: from(address) })).status;
    expect([await self('10.1.1.1'), await self('192.0.2.1')]).to.deep.equal([200, 403]);
  });

  it('refuse a caller above its rate limit before checking its token, and count each caller separately', async () => {
    await at.ask('POST sys/quotas/rate-limit/q', { body: { path: 'transit/', rate: 1, interval: '1m' } });
    await at.ask('POST sys/quotas/config', { body: { enable_rate_limit_response_headers: true } });
    const ask = (address: string, token: string | null = null) => at.ask('GET transit/keys/k', { token, headers: from(address) });
    const first = await ask('192.0.2.1');
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).to.deep.equal([403, '0']);
    const second = await ask('192.0.2.1', at.rootToken);
    expect([second.status, second.body.errors]).to.deep.equal([
      429,
      ['request path "transit/keys/k": rate limit quota exceeded'],
    ]);
    expect(Number(second.headers.get('retry-after'))).to.be.within(50, 60);
    expect(second.headers.get('x-ratelimit-limit')).to.equal('1');
    expect((await ask('192.0.2.2')).status).to.equal(403);
    expect(at.metrics.limited.count).to.equal(1);
    expect((await at.ask('GET sys/seal-status', { headers: from('192.0.2.1') })).status).to.equal(200);
  });

  it('count by token from any address if the quota says so, and by address without a valid token, before the body is read', async () => {
    await at.ask('POST sys/quotas/rate-limit/q', { body: { path: 'transit/', rate: 1, interval: '1m', group_by: 'token' } });
    expect((await at.ask('GET sys/quotas/rate-limit/q')).body.data.group_by).to.equal('token');
    const newToken = async () => (await at.ask('POST auth/token/create', { body: {} })).body.auth.client_token as string;
    const [one, other] = [await newToken(), await newToken()];
    const ask = async (token: string | null, address: string) =>
      (await at.ask('POST transit/random', { token, body: '{', headers: from(address) })).status;
    expect([await ask(one, '192.0.2.1'), await ask(one, '192.0.2.2'), await ask(other, '192.0.2.1')]).to.deep.equal([
      400, 429, 400,
    ]);
    const without = [await ask(null, '192.0.2.1'), await ask(`s.${'x'.repeat(24)}`, '192.0.2.1'), await ask(null, '192.0.2.3')];
    expect(without).to.deep.equal([400, 429, 400]);
    for (const body of [{ group_by: 'entity' }, { path: 'auth/ar/', role: 'web', group_by: 'token' }])
      expect((await at.ask('POST sys/quotas/rate-limit/x', { body: { rate: 1, ...body } })).status).to.equal(400);
  });

  it('limit the logins with a role', async () => {
    await at.ask('POST sys/auth/ar', { body: { type: 'approle' } });
    for (const name of ['web', 'other']) await at.ask(`POST auth/ar/role/${name}`, { body: {} });
    await at.ask('POST sys/quotas/rate-limit/q', { body: { path: 'auth/ar/', role: 'web', rate: 1, interval: '1m' } });
    const login = async (name: string): Promise<number> => {
      const { role_id } = (await at.ask(`GET auth/ar/role/${name}/role-id`)).body.data;
      const { secret_id } = (await at.ask(`POST auth/ar/role/${name}/secret-id`, { body: {} })).body.data;
      return (await at.ask('POST auth/ar/login', { token: null, body: { role_id, secret_id } })).status;
    };
    expect([await login('web'), await login('web'), await login('other')]).to.deep.equal([200, 429, 200]);
  });

  it('limit the logins by jwt that name no role as those of the default role', async () => {
    const write = async (path: string, body: object): Promise<void> => {
      const { status, text } = await at.ask(`POST ${path}`, { body });
      expect([status, text], path).to.deep.equal([204, '']);
    };
    await write('sys/auth/jwt', { type: 'jwt' });
    const { publicKey } = generateKeyPairSync('ed25519', { publicKeyEncoding: { type: 'spki', format: 'pem' } });
    await write('auth/jwt/config', { jwt_validation_pubkeys: [publicKey], bound_issuer: 'i', default_role: 'Web' });
    await write('auth/jwt/role/web', { bound_audiences: 'a', user_claim: 'sub' });
    await write('sys/quotas/rate-limit/q', { path: 'auth/jwt/', role: 'web', rate: 1, interval: '1m' });
    const login = async (role: object): Promise<number> =>
      (await at.ask('POST auth/jwt/login', { token: null, body: { ...role, jwt: 'a.b.c' } })).status;
    expect([await login({}), await login({ role: 'WEB' }), await login({})]).to.deep.equal([400, 429, 429]);
    expect(await login({ role: 'other' })).to.equal(400);
  });

  it('refuse a quota on a path that no mount serves', async () => {
    for (const path of ['nowhere/', 'auth/nowhere/', 'transi/'])
      expect((await at.ask('POST sys/quotas/rate-limit/q', { body: { path, rate: 1 } })).status, path).to.equal(400);
    for (const path of ['', 'transit/', 'transit/encrypt/k', 'sys/tools/', 'auth/token/'])
      expect((await at.ask('POST sys/quotas/rate-limit/q', { body: { path, rate: 1000 } })).status, path).to.equal(204);
  });

  it('limit a whole mount, also if its path is written without the slash at the end', async () => {
    await at.ask('POST sys/auth/ar', { body: { type: 'approle' } });
    for (const [path, stored] of [
      ['transit', 'transit/'],
      ['/transit', 'transit/'],
      ['auth/ar', 'auth/ar/'],
      ['auth/token', 'auth/token/'],
      ['sys', 'sys/'],
      ['sys/tools', 'sys/tools'],
      ['transit/encrypt/k', 'transit/encrypt/k'],
    ]) {
      expect((await at.ask('POST sys/quotas/rate-limit/q', { body: { path, rate: 1000 } })).status, path).to.equal(204);
      expect((await at.ask('GET sys/quotas/rate-limit/q')).body.data.path).to.equal(stored);
    }
    await at.ask('POST sys/quotas/rate-limit/q', { body: { path: 'transit', rate: 1, interval: '1h' } });
    const random = async () => (await at.ask('POST transit/random', { body: {} })).status;
    expect([await random(), await random()]).to.deep.equal([200, 429]);
  });

  it('refuse a quota for a role on a path without logins by roles', async () => {
    for (const type of ['approle', 'userpass']) await at.ask(`POST sys/auth/${type}`, { body: { type } });
    const write = async (body: object) =>
      (await at.ask('POST sys/quotas/rate-limit/q', { body: { rate: 1000, ...body } })).status;
    for (const path of ['transit', 'transit/encrypt/k', 'sys/', 'auth/token/', 'auth/userpass/', 'auth/approle/role/web'])
      expect(await write({ path, role: 'web' }), path).to.equal(400);
    for (const path of ['', 'auth/approle', 'auth/approle/login']) expect(await write({ path, role: 'web' }), path).to.equal(204);
    expect(await write({ path: 'transit/' }), 'the role is kept').to.equal(400);
    expect(await write({ path: 'transit/', role: '' })).to.equal(204);
    expect(await write({ role: 'web' }), 'the path is kept').to.equal(400);
  });

  it('read at most 64 KiB of a login', async () => {
    await at.ask('POST sys/auth/up', { body: { type: 'userpass' } });
    const login = await at.ask('POST auth/up/login/amy', { token: null, body: { password: 'x'.repeat(70_000) } });
    expect(login.status).to.equal(413);
  });

  it('return the same response for methods of another type and for missing methods', async () => {
    await at.ask('POST sys/auth/up', { body: { type: 'userpass' } });
    expect((await at.ask('POST auth/up/login', { token: null, body: {} })).status).to.equal(404);
    expect((await at.ask('POST auth/none/login', { token: null, body: {} })).status).to.equal(404);
    expect((await at.ask('GET auth/up/role/web')).body.errors).to.deep.equal(['unsupported path']);
    expect((await at.ask('POST auth/token/login', { token: null, body: {} })).status).to.equal(403);
  });

  it('need sudo to enable, tune and disable a method', async () => {
    const token = await tokenWith('path "sys/auth/*" { capabilities = ["create", "read", "update", "delete"] }');
    for (const line of ['POST sys/auth/up', 'GET sys/auth/up', 'POST sys/auth/up/tune', 'DELETE sys/auth/up'])
      expect(
        (await at.ask(line, { token, ...(line.startsWith('POST') && { body: { type: 'userpass' } }) })).status,
        line,
      ).to.equal(403);
  });

  it('show the role of a token, and delete the role without its tokens', async () => {
    await at.ask('POST auth/token/roles/r', { body: { allowed_policies: ['default'], token_type: 'nonsense' } });
    expect((await at.ask('GET auth/token/roles/r')).status).to.equal(404);
    await at.ask('POST auth/token/roles/r', { body: { allowed_policies: ['default'] } });
    const { auth } = (await at.ask('POST auth/token/create/r', { body: {} })).body;
    await at.ask('POST auth/token/roles/r', { body: { token_period: 60, token_explicit_max_ttl: '1h' } });
    expect((await at.ask('GET auth/token/roles/r')).body.data, 'under their older names too').to.include({
      token_period: 60,
      period: 60,
      token_explicit_max_ttl: 3600,
      explicit_max_ttl: 3600,
    });
    await at.ask('DELETE auth/token/roles/r');
    expect((await at.ask('GET auth/token/lookup-self', { token: auth.client_token })).body.data.role).to.equal('r');
  });

  it('delete records of revoked tokens', async () => {
    const { auth } = (await at.ask('POST auth/token/create', { body: { policies: ['p'] } })).body;
    await at.ask('POST auth/token/create', { token: auth.client_token, body: {} });
    expect((await at.ask('POST auth/token/tidy')).status).to.equal(202);
  });

  it('delete secret IDs that cannot be used any longer', async () => {
    for (const path of ['gone', 'kept']) {
      await at.ask(`POST sys/auth/${path}`, { body: { type: 'approle' } });
      await at.ask(`POST auth/${path}/role/web`, { body: {} });
      await at.ask(`POST auth/${path}/role/web/secret-id`, { body: {} });
    }
    await at.ask('DELETE sys/auth/gone');
    const tidied = async () => {
      const { status, body } = await at.ask('POST auth/kept/tidy/secret-id');
      return [status, Number.parseInt(body.warnings[0], 10)];
    };
    const [status, deleted] = await tidied();
    expect(status).to.equal(202);
    expect(deleted).to.be.greaterThan(0);
    expect(await tidied()).to.deep.equal([202, 0]);
    expect((await at.ask('GET auth/kept/role/web/secret-id?list=true')).body.data.keys).to.have.lengthOf(1);
  });

  it('show a mount to a command-line client whose token has any capability there', async () => {
    const token = await tokenWith('path "transit/keys/k" { capabilities = ["read"] } path "other/*" { capabilities = ["read"] }');
    const mount = await at.ask('GET sys/internal/ui/mounts/transit/keys/k', { token });
    expect([mount.status, mount.body.data.path, mount.body.data.type]).to.deep.equal([200, 'transit/', 'transit']);
    expect(Object.keys((await at.ask('GET sys/internal/ui/mounts', { token })).body.data.secret)).to.deep.equal(['transit/']);
    for (const other of [null, 'garbage', await tokenWith('path "*" { capabilities = ["read"] }', { num_uses: 5 })])
      expect((await at.ask('GET sys/internal/ui/mounts', { token: other })).body.data).to.deep.equal({ auth: {}, secret: {} });
    const stranger = await tokenWith('path "tr" { capabilities = ["read"] } path "transit/*" { capabilities = ["deny"] }');
    expect((await at.ask('GET sys/internal/ui/mounts/transit/keys/k', { token: stranger })).status).to.equal(403);
    const denied = await tokenWith('path "transit/keys/k" { capabilities = ["deny"] }');
    expect((await at.ask('GET sys/internal/ui/mounts/transit/keys/k', { token: denied })).status).to.equal(403);
    expect((await at.ask('GET sys/internal/ui/mounts/nowhere/x')).status).to.equal(403);
    expect((await at.ask('GET sys/internal/ui/mounts/transit', { token: null })).status).to.equal(403);
  });

  it('show an auth method and sys/ to the same callers', async () => {
    await at.ask('POST sys/auth/people', { body: { type: 'userpass' } });
    const token = await tokenWith('path "auth/token/lookup-self" { capabilities = ["read"] }');
    const seen = async (path: string, by = token) => {
      const { status, body } = await at.ask(`GET sys/internal/ui/mounts/${path}`, { token: by });
      return [status, body.data?.path, body.data?.type];
    };
    expect(await seen('auth/token/lookup-self')).to.deep.equal([200, 'auth/token/', 'token']);
    for (const path of ['auth/people/users', 'auth/nobody/users', 'auth', 'sys/mounts', 'system/x'])
      expect((await seen(path))[0], path).to.equal(403);
    expect(await seen('auth/people/users/ann', at.rootToken)).to.deep.equal([200, 'auth/people/', 'userpass']);
    expect(await seen('sys/mounts', at.rootToken)).to.deep.equal([200, 'sys/', 'system']);
    const { path: _path, ...entry } = (await at.ask('GET sys/internal/ui/mounts/auth/people')).body.data;
    expect(entry).to.deep.equal((await at.ask('GET sys/auth/people')).body.data);
  });

  it('show the effective rules of a token’s policies', async () => {
    const token = await tokenWith(
      'path "sys/internal/ui/resultant-acl" { capabilities = ["read"] } path "a/*" { capabilities = ["update", "list"] } path "b/+/c" { capabilities = ["deny"] }',
    );
    expect((await at.ask('GET sys/internal/ui/resultant-acl', { token })).body.data).to.deep.equal({
      root: false,
      exact_paths: { 'sys/internal/ui/resultant-acl': { capabilities: ['read'] } },
      glob_paths: { 'a/': { capabilities: ['list', 'update'] }, 'b/+/c': { capabilities: ['deny'] } },
    });
  });

  it('deny tools by the path that contains the value in use', async () => {
    const token = await tokenWith(
      'path "sys/tools/*" { capabilities = ["update"] } path "sys/tools/hash/sha2-512" { capabilities = ["deny"] } path "sys/tools/random/16" { capabilities = ["deny"] } path "sys/tools/random/seal" { capabilities = ["deny"] }',
    );
    const status = async (line: string, body: object) => (await at.ask(line, { token, body })).status;
    expect([
      await status('POST sys/tools/hash', { algorithm: 'sha2-512', input: '' }),
      await status('POST sys/tools/hash', { input: '' }),
      await status('POST sys/tools/random', { bytes: '0x10' }),
      await status('POST sys/tools/random/platform/16', {}),
      await status('POST sys/tools/random/017', {}),
      await status('POST sys/tools/random/8', {}),
      await status('POST sys/tools/random/all', {}),
      await status('POST sys/tools/random/8', { source: 'all' }),
    ]).to.deep.equal([403, 200, 403, 403, 200, 200, 403, 403]);
  });
});
