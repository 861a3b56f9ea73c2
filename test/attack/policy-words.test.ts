// @live
// Policies with keywords of Vault and OpenBao. No keyword grants more than in these services, and none is ignored silently.
import { expect } from 'chai';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';

describe('keywords in policies', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  const tokenWith = async (server: LiveServer, policy: string): Promise<string> => {
    expect((await server.call('PUT', 'sys/policies/acl/tried', { policy })).status).to.be.oneOf([200, 204]);
    const made = await server.call('POST', 'auth/token/create', { policies: ['tried'], no_default_policy: true });
    return made.string('auth.client_token');
  };

  it('limit lists, expire, and are refused or named in a warning if they have no effect', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    for (const name of ['a', 'b', 'c', 'd']) await server.call('POST', `transit/keys/${name}`, {});
    const list = async (policy: string, query = ''): Promise<unknown> => {
      const answer = await server.call('GET', `transit/keys?list=true${query}`, undefined, await tokenWith(server, policy));
      return answer.status === 200 ? answer.at('data.keys') : answer.status;
    };
    const plain = 'path "transit/+" { capabilities = ["list"] }';
    expect(await list(plain)).to.deep.equal(['a', 'b', 'c', 'd']);
    expect(await list('path "transit/*" { capabilities = ["list"] } path "transit/+" { capabilities = ["deny"] }')).to.equal(403);
    const paged = 'path "transit/keys" { capabilities = ["list"] pagination_limit = 2 }';
    expect(await list(paged)).to.deep.equal(['a', 'b']);
    expect(await list(paged, '&after=b&limit=max')).to.deep.equal(['c', 'd']);
    expect(await list(paged, '&limit=1')).to.deep.equal(['a']);
    for (const limit of ['3', '0', '-1', 'x', '']) expect(await list(paged, `&limit=${limit}`), limit).to.equal(403);
    const required = 'path "transit/keys" { capabilities = ["list"] pagination_limit = 2 required_parameters = ["limit"] }';
    expect([await list(required), await list(required, '&limit=2')]).to.deep.equal([403, ['a', 'b']]);
    const everywhere = await tokenWith(server, 'path "*" { capabilities = ["list"] pagination_limit = 2 }');
    for (const query of ['', '&limit=2', '&limit=max'])
      expect(
        (await server.call('GET', `sys/policies/acl?list=true${query}`, undefined, everywhere)).at('data.keys'),
        query,
      ).to.have.length(2);
    expect((await server.call('GET', 'sys/policies/acl?list=true&limit=3', undefined, everywhere)).status).to.equal(403);

    const past = 'path "transit/keys/*" { capabilities = ["read"] expiration = "2001-01-01T00:00:00Z" }';
    const future = past.replace('2001', '2999');
    const read = async (policy: string) =>
      (await server.call('GET', 'transit/keys/a', undefined, await tokenWith(server, policy))).status;
    expect([await read(past), await read(future)]).to.deep.equal([403, 200]);

    const write = (policy: string) => server.call('PUT', 'sys/policies/acl/words', { policy });
    const warned = await write('path "a/{{identity.entity.id}}" { capabilities = ["read", "scan"] }');
    expect([warned.status, (warned.at('warnings') as unknown[]).length]).to.deep.equal([200, 2]);
    for (const path of ['a/{{x', 'a/x}}', 'a/{{}}'])
      expect((await write(`path "${path}" { capabilities = ["read"] }`)).status, path).to.equal(400);
  });
});
