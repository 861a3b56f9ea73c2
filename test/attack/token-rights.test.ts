// @live
// Tokens must not gain or keep rights that nobody granted.
import { expect } from 'chai';
import { type Answer, type LiveServer, processMs, Workbench } from '../process/live-server.ts';

describe('rights of tokens', () => {
  const bench = new Workbench();
  after(() => bench.clean());
  let server: LiveServer;

  before(async function () {
    this.timeout(processMs);
    server = await bench.launch({ dataDir: bench.folder() }).ready();
    for (const name of ['userpass', 'approle'])
      expect((await server.call('POST', `sys/auth/${name}`, { type: name })).status).to.equal(204);
  });

  const write = async (path: string, body: unknown, token?: string): Promise<Answer> => {
    const answer = await server.call('POST', path, body, token ?? server.rootToken);
    expect([200, 204], `${path} ${answer.text}`).to.include(answer.status);
    return answer;
  };

  describe('with blank policy names', () => {
    const blanks = [[''], [' '], ['', ' '], ',', ' ', ' , '];
    for (const policies of blanks)
      for (const [path, more] of [
        ['create', {}],
        ['create', { type: 'batch' }],
        ['create', { no_default_policy: true }],
        ['create-orphan', {}],
        ['create/blank', {}],
        ['create/blank', { type: 'batch' }],
      ] as const)
        it(`${JSON.stringify(policies)} at ${path} with ${JSON.stringify(more)} do not include root`, async () => {
          await write('auth/token/roles/blank', {});
          const answer = await write(`auth/token/${path}`, { policies, ttl: '1h', ...more });
          expect(answer.at('auth.policies')).to.deep.equal('no_default_policy' in more ? [] : ['default']);
          const used = await server.call('GET', 'sys/policies/acl/default', undefined, answer.string('auth.client_token'));
          expect(used.status).to.equal(403);
        });

    for (const field of ['allowed_policies', 'allowed_policies_glob'])
      for (const value of blanks)
        it(`${JSON.stringify(value)} as ${field} of a role do not include root`, async () => {
          await write('auth/token/roles/blank-allowed', { [field]: value });
          expect((await write('auth/token/create/blank-allowed', {})).at('auth.policies')).to.deep.equal(['default']);
          expect((await server.call('DELETE', 'auth/token/roles/blank-allowed')).status).to.equal(204);
        });

    it('of a user or an AppRole role are only those of the default policy', async () => {
      for (const [name, policies] of [[''], ','].entries()) {
        await write(`auth/userpass/users/blank-${name}`, { password: 'p', token_policies: policies });
        const user = await server.call('POST', `auth/userpass/login/blank-${name}`, { password: 'p' }, null);
        expect(user.at('auth.policies')).to.deep.equal(['default']);
        await write(`auth/approle/role/blank-${name}`, { token_policies: policies });
        const role_id = (await server.call('GET', `auth/approle/role/blank-${name}/role-id`)).string('data.role_id');
        const secret_id = (await write(`auth/approle/role/blank-${name}/secret-id`, {})).string('data.secret_id');
        const role = await server.call('POST', 'auth/approle/login', { role_id, secret_id }, null);
        expect(role.at('auth.policies')).to.deep.equal(['default']);
      }
    }).timeout(processMs);
  });

  describe('that were withdrawn', () => {
    const renew = async (token: string): Promise<number> => (await server.call('POST', 'auth/token/renew', { token })).status;

    it('are not renewed for a user whose policies changed, or who was deleted', async () => {
      await write('auth/userpass/users/amy', { password: 'p', token_policies: ['admin'], token_period: '1h' });
      const login = await server.call('POST', 'auth/userpass/login/amy', { password: 'p' }, null);
      const token = login.string('auth.client_token');
      expect(await renew(token)).to.equal(200);
      await write('auth/userpass/users/amy/policies', { token_policies: ['reader'] });
      expect(await renew(token)).to.equal(400);
      const self = await server.call('POST', 'auth/token/renew-self', {}, token);
      expect([self.status, self.at('errors.0')]).to.deep.equal([
        400,
        'lease is not renewable: the policies of the user or role of its login have changed',
      ]);
      await write('auth/userpass/users/amy/policies', { token_policies: ['admin'] });
      expect(await renew(token)).to.equal(200);
      expect((await server.call('DELETE', 'auth/userpass/users/amy')).status).to.equal(204);
      expect(await renew(token)).to.equal(400);
    });

    it('are not renewed for a token whose token role was deleted', async () => {
      await write('auth/token/roles/job', { allowed_policies: ['admin'], token_period: '1h' });
      const token = (await write('auth/token/create/job', {})).string('auth.client_token');
      expect(await renew(token)).to.equal(200);
      expect((await server.call('DELETE', 'auth/token/roles/job')).status).to.equal(204);
      expect(await renew(token)).to.equal(400);
    });
  });

  it('of a batch token with a number of uses are refused, because uses cannot be counted', async () => {
    await write('auth/token/roles/few', { allowed_policies: ['default'], token_num_uses: 2 });
    const refused = await server.call('POST', 'auth/token/create/few', { type: 'batch' });
    expect([refused.status, refused.at('errors.0')]).to.deep.equal([400, 'batch tokens cannot have "num_uses" set']);
  });

  it('of a wrapping token do not include extending its own TTL', async () => {
    const wrapped = await fetch(`${server.url}/v1/sys/wrapping/wrap`, {
      method: 'POST',
      headers: { 'X-Service-Token': server.rootToken, 'X-Service-Wrap-TTL': '60' },
      body: '{"a":1}',
    });
    const waiting = ((await wrapped.json()) as { wrap_info: { token: string } }).wrap_info.token;
    expect((await server.call('POST', 'sys/wrapping/rewrap', { token: waiting }, null)).status).to.equal(403);
    const again = await server.call('POST', 'sys/wrapping/rewrap', { token: waiting });
    const token = again.string('wrap_info.token');
    expect((await server.call('POST', 'sys/wrapping/rewrap', {}, token)).status).to.equal(403);
    expect((await server.call('POST', 'sys/wrapping/unwrap', { token }, null)).status, 'that was its use').to.equal(400);
  });

  it('to create an orphan are not needed if the role creates orphans', async () => {
    await write('auth/token/roles/orphans', { orphan: true });
    await write('sys/policies/acl/maker', {
      policy: 'path "auth/token/create/orphans" { capabilities = ["update"] }',
    });
    const maker = (await write('auth/token/create', { policies: ['maker'] })).string('auth.client_token');
    const made = await write('auth/token/create/orphans', { no_parent: true }, maker);
    expect(made.at('auth.orphan')).to.equal(true);
  });
});
