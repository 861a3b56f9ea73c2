import { expect } from 'chai';
import { type Served, served } from '../served.ts';

const policy = `
path "transit/keys/*" { capabilities = ["list", "read"] }
path "transit/keys/secret" { capabilities = ["deny"] }
path "transit/+/orders" { capabilities = ["update"] }
path "x//y" { capabilities = ["read"] }
`;

describe('policies/check', () => {
  let api: Served;
  before(async () => {
    api = await served();
  });
  after(() => api.close());

  const check = (body: object) => api.ask('POST sys/policies/check', { body });

  it('evaluates a policy alone, and names the rule that decides about each path', async () => {
    const paths = ['transit/keys/a', 'transit/keys/secret', 'transit/keys/', 'transit/sign/orders', 'sys/seal'];
    const { status, body } = await check({ policy, paths });
    expect(status).to.equal(200);
    expect(body.data).to.deep.equal({
      rules: 4,
      decisions: [
        { path: 'transit/keys/a', capabilities: ['list', 'read'], rule: 'transit/keys/*' },
        { path: 'transit/keys/secret', capabilities: ['deny'], rule: 'transit/keys/secret' },
        { path: 'transit/keys/', capabilities: ['list', 'read'], rule: 'transit/keys/*' },
        { path: 'transit/sign/orders', capabilities: ['update'], rule: 'transit/+/orders' },
        { path: 'sys/seal', capabilities: ['deny'], rule: null },
      ],
    });
    expect(body.warnings).to.deep.equal(['1 of its paths have an empty segment: they match no request']);
  });

  for (const operation of ['policies/check', 'capabilities-self'])
    it(`refuses a path in sys/${operation} that no request could have, instead of splitting it into millions of segments`, async () => {
      const ask = (path: string) => api.ask(`POST sys/${operation}`, { body: { policy, paths: [path] } });
      expect((await ask('a/'.repeat(8192))).status).to.equal(200);
      const { status, body } = await ask(`${'a/'.repeat(8192)}a`);
      expect(status).to.equal(400);
      expect(body.errors).to.deep.equal(['a path has at most 16384 characters']);
    });

  it('gives the same warnings as a write, and writes nothing', async () => {
    const written = await api.ask('POST sys/policies/acl/w', { body: { policy } });
    const before = await api.ask('LIST sys/policies/acl');
    const checked = await check({ policy });
    expect(checked.body.warnings).to.deep.equal(written.body.warnings);
    expect((await api.ask('LIST sys/policies/acl')).body.data).to.deep.equal(before.body.data);
  });

  it('gives line and column of a mistake', async () => {
    const { status, body } = await check({ policy: 'path "a" {\n  capabilites = ["read"]\n}' });
    expect(status).to.equal(400);
    expect(body.errors[0]).to.match(/^failed to parse policy: .*2/);
  });

  it('refuses more than 100 paths, and no policy at all', async () => {
    expect((await check({ policy, paths: Array.from({ length: 101 }, () => 'a') })).status).to.equal(400);
    expect((await check({ paths: ['a'] })).status).to.equal(400);
  });

  it('needs a right of its own', async () => {
    const created = await api.ask('POST auth/token/create', { body: { policies: ['default'] } });
    const token = created.body.auth.client_token;
    expect((await api.ask('POST sys/policies/check', { body: { policy }, token })).status).to.equal(403);
  });
});
