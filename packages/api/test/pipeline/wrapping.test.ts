import { StoreError, transactionBytesMax } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { type Served, served } from '../served.ts';

const wrap = { 'X-Service-Wrap-TTL': '60' };

describe('a wrapped response', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served();
    await at.ask('POST transit/keys/k');
  });
  afterEach(() => at.close());

  it('can be unwrapped once, whole', async () => {
    const { status, body } = await at.ask('GET transit/keys/k', { headers: wrap });
    expect([status, body.data, body.auth]).to.deep.equal([200, null, null]);
    expect(body.wrap_info).to.include({ ttl: 60, creation_path: 'transit/keys/k' }).and.to.not.have.property('wrapped_accessor');
    const { token } = body.wrap_info;
    const looked = await at.ask('POST sys/wrapping/lookup', { token: null, body: { token } });
    expect(looked.body.data).to.include({ creation_path: 'transit/keys/k', creation_ttl: 60 });
    const first = await at.ask('POST sys/wrapping/unwrap', { token });
    expect([first.status, first.body.data.name, first.body.wrap_info]).to.deep.equal([200, 'k', null]);
    for (const options of [{ token }, { token: null, body: { token } }, { body: { token } }]) {
      const again = await at.ask('POST sys/wrapping/unwrap', options);
      expect([again.status, again.body.errors]).to.deep.equal([400, ['wrapping token is not valid or does not exist']]);
    }
  });

  it('may be a new token', async () => {
    const { body } = await at.ask('POST auth/token/create', { headers: wrap, body: { policies: ['default'] } });
    const { body: unwrapped } = await at.ask('POST sys/wrapping/unwrap', { token: body.wrap_info.token });
    expect(unwrapped.auth.accessor).to.equal(body.wrap_info.wrapped_accessor);
    const { body: self } = await at.ask('GET auth/token/lookup-self', { token: unwrapped.auth.client_token });
    expect(self.data.policies).to.deep.equal(['default']);
  });

  it('may be the response to a login, and keeps the status of a batch until it is unwrapped', async () => {
    await at.ask('POST sys/auth/up', { body: { type: 'userpass' } });
    await at.ask('POST auth/up/users/amy', { body: { password: 'p' } });
    const login = await at.ask('POST auth/up/login/amy', { token: null, headers: wrap, body: { password: 'p' } });
    expect(login.body.auth).to.equal(null);
    expect((await at.ask('POST sys/wrapping/unwrap', { token: login.body.wrap_info.token })).body.auth.metadata).to.deep.equal({
      username: 'amy',
    });
    const items = [{ plaintext: 'AAAA' }, { plaintext: 'no base64' }];
    const batch = await at.ask('POST transit/encrypt/k', { headers: wrap, body: { batch_input: items } });
    expect([batch.status, batch.text.includes('svc:')]).to.deep.equal([200, false]);
    const unwrapped = await at.ask('POST sys/wrapping/unwrap', { token: batch.body.wrap_info.token });
    expect([unwrapped.status, unwrapped.body.data.batch_results.length]).to.deep.equal([400, 2]);
  });

  it('is refused before it is encoded if no record can hold it', async () => {
    const large = await served({ bodyBytesMax: 2 * transactionBytesMax });
    await large.ask('POST transit/keys/k');
    large.services.wrapping.wrap = () => Promise.reject(new Error('was encoded'));
    const of = (length: number): string => 'A'.repeat(length);
    const own = await large.ask('POST sys/wrapping/wrap', { headers: wrap, body: { a: of(transactionBytesMax) } });
    expect([own.status, own.body.errors]).to.deep.equal([413, ['http: request body too large']]);
    const body = { plaintext: of(transactionBytesMax) };
    const result = await large.ask('POST transit/encrypt/k', { headers: wrap, body });
    expect([result.status, result.body.errors]).to.deep.equal([413, ['the response is too large to be wrapped']]);
    large.close();
  });

  it('counts to the token that requested it, or to the user or role of its login', async () => {
    const owners: string[] = [];
    const { wrap: store } = at.services.wrapping;
    at.services.wrapping.wrap = (answer) => {
      owners.push(answer.owner);
      return store.call(at.services.wrapping, answer);
    };
    await at.ask('POST sys/auth/up', { body: { type: 'userpass' } });
    await at.ask('POST auth/up/users/amy', { body: { password: 'p' } });
    const login = async (): Promise<string> =>
      (await at.ask('POST auth/up/login/amy', { token: null, body: { password: 'p' } })).body.auth.client_token;
    for (const token of [at.rootToken, await login(), await login()])
      await at.ask('POST sys/wrapping/wrap', { token, headers: wrap, body: { a: 1 } });
    await at.ask('POST auth/up/login/amy', { token: null, headers: wrap, body: { password: 'p' } });
    const [root, ...others] = owners;
    expect(root).to.match(/^[0-9a-f]{64}$/);
    expect(others.map((owner) => owner.replace(/^access\/login\/[^/]+/, ''))).to.deep.equal([
      '/user/amy',
      '/user/amy',
      '127.0.0.1',
    ]);
  });

  it('is consumed by any other use of its token', async () => {
    const { token } = (await at.ask('GET transit/keys/k', { headers: wrap })).body.wrap_info;
    expect((await at.ask('GET auth/token/lookup-self', { token })).status).to.equal(403);
    expect((await at.ask('POST sys/wrapping/unwrap', { token })).status).to.equal(400);
  });

  it('can be rewrapped, and a caller can wrap data of its own', async () => {
    const sent = await at.ask('POST sys/wrapping/wrap', { headers: wrap, body: { a: 1 } });
    const again = await at.ask('POST sys/wrapping/rewrap', { body: { token: sent.body.wrap_info.token } });
    expect(again.body.wrap_info).to.include({ creation_path: 'sys/wrapping/wrap', ttl: 60 });
    expect((await at.ask('POST sys/wrapping/unwrap', { token: sent.body.wrap_info.token })).status).to.equal(400);
    expect((await at.ask('POST sys/wrapping/unwrap', { token: again.body.wrap_info.token })).body.data).to.deep.equal({ a: 1 });
    expect((await at.ask('POST sys/wrapping/wrap', { body: { a: 1 } })).status).to.equal(400);
  });

  it('is rewrapped only for a caller whose policies allow it: a wrapping token cannot extend its own lifetime', async () => {
    const waiting = async () => (await at.ask('GET transit/keys/k', { headers: wrap })).body.wrap_info.token as string;
    const made = async (policies: readonly string[]) =>
      (await at.ask('POST auth/token/create', { body: { policies } })).body.auth.client_token as string;
    await at.ask('POST sys/policies/acl/rewraps', {
      body: { policy: 'path "sys/wrapping/rewrap" { capabilities = ["update"] }' },
    });
    const rewrap = async (token: string | null, body: object) =>
      (await at.ask('POST sys/wrapping/rewrap', { token, body })).status;
    const one = await waiting();
    expect(await rewrap(null, { token: one })).to.equal(403);
    expect(await rewrap(await made(['default']), { token: one })).to.equal(403);
    expect(await rewrap(await made(['rewraps']), { token: one })).to.equal(200);
    const another = await waiting();
    expect(await rewrap(another, {})).to.equal(403);
    expect((await at.ask('POST sys/wrapping/unwrap', { token: another })).status, 'that was its one use').to.equal(400);
    const third = await waiting();
    expect(await rewrap(third, { token: third })).to.equal(403);
    expect(await rewrap(await made(['rewraps']), {})).to.equal(400);
    expect(await rewrap(await made(['rewraps']), { token: null })).to.equal(400);
  });

  it('is refused, and nothing is executed, for an invalid TTL', async () => {
    for (const ttl of ['soon', '-1', '769h', '0.5s']) {
      const headers = { 'X-Vault-Wrap-TTL': ttl };
      expect((await at.ask('POST transit/keys/other', { headers })).status, ttl).to.equal(400);
      expect((await at.ask('POST auth/token/create', { headers })).status, ttl).to.equal(400);
    }
    expect((await at.ask('GET transit/keys/other')).status).to.equal(404);
  });

  it('leaves no token and shows none if it cannot be wrapped', async () => {
    const before = (await at.services.registry.accessors()).length;
    at.services.wrapping.wrap = () => Promise.reject(new StoreError('disk_low', 'no room'));
    const refused = await at.ask('POST auth/token/create', { headers: wrap, body: { policies: ['default'] } });
    expect([refused.status, refused.body]).to.deep.equal([503, { errors: ['no room'] }]);
    expect((await at.services.registry.accessors()).length).to.equal(before);
  });

  it('leaves refusals and responses without a body unchanged', async () => {
    expect((await at.ask('GET transit/keys/none', { headers: wrap })).body).to.deep.equal({ errors: [] });
    expect((await at.ask('POST sys/policies/acl/p', { headers: wrap, body: { policy: 'path "a" {}' } })).status).to.equal(204);
  });

  it('can be required by a policy', async () => {
    await at.ask('POST sys/policies/acl/w', {
      body: { policy: 'path "transit/keys/k" { capabilities = ["read"] min_wrapping_ttl = "30s" max_wrapping_ttl = "60s" }' },
    });
    const { auth } = (await at.ask('POST auth/token/create', { body: { policies: ['w'] } })).body;
    const status = async (ttl: string) =>
      (await at.ask('GET transit/keys/k', { token: auth.client_token, headers: { 'X-Service-Wrap-TTL': ttl } })).status;
    expect([await status('0'), await status('29'), await status('30'), await status('61')]).to.deep.equal([403, 403, 200, 403]);
  });

  it('is refused if a secret would be sent unwrapped', async () => {
    expect((await at.ask('POST sys/unseal', { token: null, headers: wrap, body: { key: '00' } })).body.errors).to.deep.equal([
      'this response cannot be wrapped',
    ]);
  });
});
