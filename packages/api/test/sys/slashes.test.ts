import { expect } from 'chai';
import fc from 'fast-check';
import { auditedMount } from '../../src/pipeline/audit-recording.ts';
import { allRoutes } from '../../src/routes.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

const grants = (path: string): string => `path "${path}" { capabilities = ["create", "read", "update", "delete", "list"] }`;

describe('names with slashes', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served();
  });
  afterEach(() => at.close());

  const tokenWith = async (policy: string): Promise<string> => {
    await at.ask('POST sys/policies/acl/tried', { body: { policy } });
    return (await at.ask('POST auth/token/create', { body: { policies: ['tried'] } })).body.auth.client_token;
  };

  it('name policies, which are listed whole and granted to tokens', async () => {
    const body = { policy: grants('transit/keys/*') };
    expect((await at.ask('POST sys/policies/acl/Team/Orders', { body })).status).to.equal(200);
    expect((await at.ask('GET sys/policies/acl?list=true')).body.data.keys).to.deep.equal(['default', 'root', 'team/orders']);
    expect((await at.ask('GET sys/policy/team/orders')).body.data).to.deep.equal({ name: 'team/orders', rules: body.policy });
    const { auth } = (await at.ask('POST auth/token/create', { body: { policies: ['team/orders'] } })).body;
    const capabilities = { token: auth.client_token, path: 'transit/keys/a' };
    expect((await at.ask('POST sys/capabilities', { body: capabilities })).body.data.capabilities).to.include('update');
    expect((await at.ask('DELETE sys/policies/acl/team/orders')).status).to.equal(204);
    expect((await at.ask('GET sys/policies/acl/team/orders')).status).to.equal(404);
  });

  for (const name of ['/team', 'team/', 'a//b', 'a/../b', '.', 'a\u0000b', 'a'.repeat(513)])
    it(`a policy name that no request could name is refused with the rule: ${JSON.stringify(name.slice(0, 20))}`, async () => {
      const { status, body } = await at.ask('POST auth/token/create', { body: { policies: [name] } });
      expect([status, body.errors[0]]).to.deep.equal([
        400,
        'a policy name must have 1 to 512 bytes, no control characters and no segment that is empty, "." or ".."',
      ]);
    });

  it('are paths of auth methods, with logins, tokens, quotas and audit entries below them', async () => {
    expect((await at.ask('POST sys/auth/team/people', { body: { type: 'userpass', description: 'staff' } })).status).to.equal(
      204,
    );
    expect((await at.ask('POST sys/auth/team/apps', { body: { type: 'approle' } })).status).to.equal(204);
    expect(Object.keys((await at.ask('GET sys/auth')).body.data)).to.deep.equal(['team/apps/', 'team/people/', 'token/']);
    expect((await at.ask('POST sys/auth/team/people/tune', { body: { max_lease_ttl: '1h' } })).status).to.equal(204);
    for (const path of ['sys/auth/team/people', 'sys/mounts/auth/team/people'])
      expect((await at.ask(`GET ${path}`)).body.data).to.deep.include({ type: 'userpass', description: 'staff' });
    const user = { password: 'a long password', token_policies: ['team/orders'] };
    await at.ask('POST auth/team/people/users/Ada', { body: user });
    const { auth } = (await at.ask('POST auth/team/people/login/ada', { body: user, token: null })).body;
    expect(auth).to.deep.include({ policies: ['default', 'team/orders'], lease_duration: 3600 });
    const self = await at.ask('GET auth/token/lookup-self', { token: auth.client_token });
    expect(self.body.data).to.include({ display_name: 'team-people-ada', path: 'auth/team/people/login/ada' });
    expect((await at.ask('POST auth/token/renew-self', { token: auth.client_token })).status).to.equal(200);
    const serving = await at.ask('GET sys/internal/ui/mounts/auth/team/people/login/ada');
    expect(serving.body.data).to.include({ path: 'auth/team/people/', type: 'userpass' });
    for (const path of ['login/ada', 'users', 'unknown'])
      expect(await auditedMount(at.services, `auth/team/people/${path}`), path).to.include({ point: 'auth/team/people/' });
    const quota = { path: 'auth/team/people', rate: 1, interval: '60s' };
    expect((await at.ask('POST sys/quotas/rate-limit/q', { body: quota })).status).to.equal(204);
    const login = async (path: string) => (await at.ask(`POST auth/${path}`, { body: user, token: null })).status;
    expect([await login('team/people/login/ada'), await login('team/people/login/ada')]).to.deep.equal([200, 429]);
    expect(await login('team/apps/login'), 'the quota is for one method').to.equal(400);
    expect((await at.ask('DELETE sys/auth/team/people')).status).to.equal(204);
    expect((await at.ask('GET auth/token/lookup-self', { token: auth.client_token })).status, 'revoked').to.equal(403);
  });

  it('are no paths of auth methods that would be a prefix of another, or that look like requests', async () => {
    const enable = async (path: string) => {
      const { status, body } = await at.ask(`POST sys/auth/${path}`, { body: { type: 'userpass' } });
      return status === 204 ? 'enabled' : body.errors[0];
    };
    expect(await enable('a/b')).to.equal('enabled');
    expect(await enable('a-c/b')).to.equal('enabled');
    expect(await enable('a')).to.equal('path is already in use at a/b/');
    expect(await enable('a/b/c')).to.equal('path is already in use at a/b/');
    expect(await enable('a/bc')).to.equal('enabled');
    expect(await enable('role')).to.equal('enabled');
    for (const word of ['role', 'users', 'login', 'config'])
      expect(await enable(`x/${word}`)).to.match(/^the path of an auth method must not have ".*" after its first segment/);
    expect(await enable('token/x')).to.match(/must not begin with "token"/);
    expect(await enable('a/$')).to.match(/at most 8 segments of 1 to 64 letters, digits/);
    expect(await enable('1/2/3/4/5/6/7/8/9')).to.match(/at most 8 segments/);
    const enabled = await Promise.all(['m/n', 'm', 'm/n/o'].map(enable));
    expect(enabled.filter((answer) => answer === 'enabled')).to.have.length(1);
  });

  it('respect denials of either path of an auth method', async () => {
    await at.ask('POST sys/auth/team/people', { body: { type: 'userpass' } });
    const rights = 'capabilities = ["read", "update", "sudo"]';
    for (const denied of ['sys/auth/team/people/tune', 'sys/mounts/auth/team/people/tune']) {
      const token = await tokenWith(`path "sys/*" { ${rights} } path "${denied}" { capabilities = ["deny"] }`);
      for (const path of ['sys/auth/team/people/tune', 'sys/mounts/auth/team/people/tune'])
        expect((await at.ask(`POST ${path}`, { token, body: { description: 'x' } })).status, path).to.equal(403);
    }
  });

  it('split the path of a request in at most one way, whichever methods are enabled', () => {
    const routes = allRoutes(new TestMetrics()).filter(({ path }) => path.startsWith('auth/*method/'));
    const patterns = routes.map(({ path, accepts }) => ({ parts: path.split('/').slice(2), accepts }));
    for (const { parts, accepts } of patterns) expect(accepts?.({ method: `x/${parts[0]}` }), parts[0]).to.equal(false);
    const words = [...new Set(patterns.flatMap(({ parts }) => parts).filter((part) => !part.startsWith(':')))];
    const segment = fc.oneof(fc.constantFrom(...words), fc.constantFrom('x', 'token'));
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 7 }), (segments) => {
        const matching = new Set(
          patterns.flatMap(({ parts, accepts }) => {
            const depth = segments.length - parts.length;
            const fits = depth > 0 && parts.every((part, index) => part.startsWith(':') || part === segments[depth + index]);
            return fits && accepts?.({ method: segments.slice(0, depth).join('/') }) ? [depth] : [];
          }),
        );
        expect(matching.size).to.be.at.most(1);
      }),
      { numRuns: 3000 },
    );
  });
});
