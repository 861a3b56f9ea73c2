// Rights on a live node: a request that a policy denies stays denied in every spelling.
import { expect } from 'chai';
import { base64, type LiveServer, processMs, Workbench } from './live-server.ts';
import { tokenWith } from './token-with.ts';

describe('rights', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('exclude a denied algorithm in the path, in the body or as default, and a denied policy name in other letters', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    await server.call('POST', 'transit/keys/k', {});
    const token = await tokenWith(
      server,
      `path "transit/hmac/*" { capabilities = ["update"] } path "transit/hmac/k/sha1" { capabilities = ["deny"] }
       path "sys/policies/acl/*" { capabilities = ["read", "update"] } path "sys/policies/acl/admin" { capabilities = ["deny"] }`,
    );
    const input = base64('x');
    const hmac = async (path: string, body: object): Promise<number> => (await server.call('POST', path, body, token)).status;
    expect(await hmac('transit/hmac/k', { input })).to.equal(200);
    expect(await hmac('transit/hmac/k/sha1', { input })).to.equal(403);
    expect(await hmac('transit/hmac/k', { input, algorithm: 'sha1' })).to.equal(403);
    const policy = { policy: 'path "a" { capabilities = ["read"] }' };
    expect((await server.call('PUT', 'sys/policies/acl/other', policy, token)).status).to.equal(204);
    for (const name of ['admin', 'Admin', 'ADMIN']) {
      expect((await server.call('PUT', `sys/policies/acl/${name}`, policy, token)).status, name).to.equal(403);
      expect((await server.call('GET', `sys/policies/acl/${name}`, undefined, token)).status, name).to.equal(403);
    }
  });

  it('on a policy apply to its stored name, in whatever letters the request has it', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    const token = await tokenWith(
      server,
      'path "sys/policies/acl/A*" { capabilities = ["read", "update", "delete"] } path "sys/policy/+" { capabilities = ["read"] }',
    );
    const policy = { policy: 'path "a" { capabilities = ["read"] }' };
    expect((await server.call('PUT', 'sys/policies/acl/admin', policy)).status).to.equal(204);
    for (const [verb, body] of [
      ['PUT', policy],
      ['GET', undefined],
      ['DELETE', undefined],
    ] as const)
      expect((await server.call(verb, 'sys/policies/acl/Admin', body, token)).status, verb).to.equal(403);
    expect((await server.call('GET', 'sys/policy/Admin', undefined, token)).status).to.equal(200);
  });

  it('of a token with limited uses apply to each use, however many come at once, and the last one shows it', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    const made = await server.call('POST', 'auth/token/create', { policies: ['default'], num_uses: 40 });
    const token = made.string('auth.client_token');
    const lookUp = () => server.call('GET', 'auth/token/lookup-self', undefined, token);
    const answers = await Promise.all(Array.from({ length: 40 }, lookUp));
    expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 200));
    const left = answers.map((answer) => Number(answer.at('data.num_uses')));
    expect(left.sort((a, b) => b - a)).to.deep.equal(Array.from({ length: 40 }, (_, n) => 39 - n));
    expect((await lookUp()).status).to.equal(403);
  });

  it('are reported for at most 1,000 paths, and renew-self warns that a token in the body has no effect', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    const token = await tokenWith(
      server,
      'path "sys/capabilities-self" { policy = "write" } path "auth/token/renew-self" { policy = "write" }',
    );
    const ask = (count: number) =>
      server.call('POST', 'sys/capabilities-self', { paths: Array.from({ length: count }, (_, n) => `p${n}`) }, token);
    expect([(await ask(1000)).status, (await ask(1001)).status]).to.deep.equal([200, 400]);
    const renewed = await server.call('POST', 'auth/token/renew-self', { token: 'another', accessor: 'x' }, token);
    expect(renewed.at('warnings')).to.include('Endpoint ignored these unrecognized parameters: [accessor token]');
  });

  it('end with the token and its children when a revocation is acknowledged, also after a restart', async function () {
    this.timeout(processMs);
    const dataDir = bench.folder();
    const server = await bench.start({ dataDir });
    await server.call('POST', 'transit/keys/k', {});
    const parent = await tokenWith(
      server,
      'path "transit/*" { capabilities = ["update"] } path "auth/token/create" { capabilities = ["update"] }',
    );
    const child = (
      await server.call('POST', 'auth/token/create', { policies: ['tried'], no_default_policy: true }, parent)
    ).string('auth.client_token');
    const encrypt = async (target: LiveServer, token: string): Promise<number> =>
      (await target.call('POST', 'transit/encrypt/k', { plaintext: base64('x') }, token)).status;
    expect([await encrypt(server, parent), await encrypt(server, child)]).to.deep.equal([200, 200]);
    expect((await server.call('POST', 'auth/token/revoke', { token: parent })).status).to.equal(204);
    expect([await encrypt(server, parent), await encrypt(server, child)]).to.deep.equal([403, 403]);
    await server.stop('SIGKILL');
    const again = await bench.start({ dataDir });
    expect([await encrypt(again, parent), await encrypt(again, child)]).to.deep.equal([403, 403]);
  });
});
