import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { initialAccess, openAccess, type TokenRequest } from '@transitd/access';
import { AuditKey } from '@transitd/audit';
import { dataReply, noContentReply, parsePath, type Verb } from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import { systemClock } from '@transitd/process';
import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import pino from 'pino';
import { follow, mounted } from '../../../node/test/mounts/mounted.ts';
import { until } from '../../../process/test/until.ts';
import type { GuardedOperation } from '../../src/operation/operation.ts';
import { Pipeline } from '../../src/pipeline/pipeline.ts';
import { TestMetrics } from '../test-metrics.ts';

const done: Pick<GuardedOperation, 'access' | 'name' | 'run'> = { access: 'token', name: 'test', run: () => noContentReply };

async function setup(operation: Partial<GuardedOperation> = { capability: 'update' }, asked?: Verb) {
  const store = memoryStore();
  const { rootToken, writes } = initialAccess({ now: Date.now() });
  await store.commit({ conditions: [], writes });
  const access = openAccess({ store, clock: systemClock });
  const { tokens, policies, registry } = access;
  const services: Services = {
    ...access,
    ...(await mounted(store, 'transit')),
    auditKey: new AuditKey(store),
    sinceMs: 0,
  };
  const metrics = new TestMetrics();
  const pipeline = new Pipeline({
    node: {
      services,
      initialized: true,
      eligibility: { readRole: 'active', waitUntilInForce: async () => undefined },
    } as unknown as Node,
    log: pino({ level: 'silent' }),
    metrics,
    bodyBytesMax: 1_000_000,
  });
  const server: Server = createServer((req, res) => {
    const path = parsePath(req.url ?? '');
    const verb = asked ?? (req.method === 'GET' ? 'GET' : 'POST');
    void pipeline.serve(req, res, {
      path,
      canonical: path.path,
      url: req.url ?? '',
      verb,
      operation: { ...done, ...operation },
      params: { mount: path.segments[0] ?? '' },
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  const { port } = server.address() as AddressInfo;

  const tokenWith = async (policy: string, asked: TokenRequest = {}): Promise<string> => {
    await policies.write('p', policy);
    const principal = await tokens.authenticate(rootToken);
    if (principal === undefined) throw new Error('no root token');
    const where = { principal, privileged: true, path: 'auth/token/create', makesOrphans: false };
    return (await registry.create({ policies: ['p'], noDefaultPolicy: true, ...asked }, where)).token;
  };
  /** @param pause - called after the head and the start of the body are sent, before the rest */
  const ask = async (token: string, path: string, body: object = {}, pause?: () => Promise<unknown>): Promise<number> => {
    const text = JSON.stringify(body);
    const sent = request({
      port,
      method: 'POST',
      path: `/v1/${path}`,
      headers: { 'x-service-token': token, 'content-length': text.length },
    });
    sent.write(text.slice(0, 1));
    if (pause !== undefined) {
      await until(() => reads.has(token));
      await pause();
    }
    sent.end(text.slice(1));
    const [response] = await once(sent, 'response');
    response.resume();
    return response.statusCode;
  };
  // Tokens that were looked up, so that the body of their request is being read.
  const reads = new Set<string>();
  const { authenticate } = tokens;
  tokens.authenticate = (token) => {
    setImmediate(() => reads.add(token));
    return authenticate.call(tokens, token);
  };
  return { rootToken, policies, registry, tokens, tokenWith, ask, store, services };
}

const servers: Server[] = [];

describe('the rights of a request', () => {
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  const grants = 'path "transit/hmac/*" { capabilities = ["update"] }';

  it('are decided by the policies of the caller for the path and the members of the body', async () => {
    const { rootToken, tokenWith, ask } = await setup();
    const token = await tokenWith(`${grants} path "transit/x" { capabilities = ["update"] denied_parameters = { a = ["b"] } }`);
    expect(await ask(token, 'transit/hmac/k')).to.equal(204);
    expect(await ask(token, 'transit/other/k')).to.equal(403);
    expect(await ask(token, 'transit/x', { a: 'c' })).to.equal(204);
    expect(await ask(token, 'transit/x', { a: 'b' })).to.equal(403);
    expect(await ask(rootToken, 'transit/x', { a: 'b' })).to.equal(204);
  });

  it('must include sudo if the operation requires it', async () => {
    const { tokenWith, ask } = await setup({ capability: 'update', sudo: true });
    const token = await tokenWith('path "a" { capabilities = ["update"] } path "b" { capabilities = ["update", "sudo"] }');
    expect([await ask(token, 'a'), await ask(token, 'b')]).to.deep.equal([403, 204]);
  });

  it('to a list that needs sudo are decided by the rule of the list', async () => {
    const { tokenWith, ask } = await setup({ capability: 'list', sudo: true }, 'LIST');
    const both = '{ capabilities = ["list", "sudo"] }';
    const token = await tokenWith(`path "a/" { capabilities = ["list"] } path "a" ${both} path "b/" ${both}`);
    expect([await ask(token, 'a'), await ask(token, 'b')]).to.deep.equal([403, 204]);
  });

  it('are create or update if the operation decides between the two, within the allowed parameters', async () => {
    const { tokenWith, ask } = await setup({});
    const token = await tokenWith(
      'path "c" { capabilities = ["create"] required_parameters = ["a"] } path "u" { capabilities = ["update"] } path "r" { capabilities = ["read"] }',
    );
    expect([await ask(token, 'c', { a: 1 }), await ask(token, 'c'), await ask(token, 'u'), await ask(token, 'r')]).to.deep.equal([
      204, 403, 204, 403,
    ]);
  });

  it('are lost when the token is revoked while the body arrives', async () => {
    const { registry, tokenWith, ask } = await setup();
    const token = await tokenWith(grants);
    expect(await ask(token, 'transit/hmac/k', {}, () => registry.revoke({ token }))).to.equal(403);
  });

  it('apply to the mounts as they are after the body has arrived', async () => {
    const seen: string[][] = [];
    const { rootToken, ask, store, services } = await setup({
      run: ({ services }) => {
        seen.push(services.mounts.list.map(({ path }) => path));
        return noContentReply;
      },
    });
    const other = await follow({ ...store });
    const { get } = store;
    const held = Promise.withResolvers<void>();
    store.get = async (path) => {
      if (path === 'core/mounts') await held.promise;
      return get.call(store, path);
    };
    // Another node makes the change. This node has applied it when the body ends, and reads it when the request looks up the mount.
    Object.defineProperty(services.mounts, 'changing', {
      get() {
        held.resolve();
        return Reflect.get(Object.getPrototypeOf(services.mounts), 'changing', services.mounts);
      },
    });
    const answered = ask(rootToken, 'transit/hmac/k', {}, () => other.remount({ from: 'transit', to: 'moved' }));
    expect(await answered).to.equal(204);
    expect(seen).to.deep.equal([['moved']]);
    other.close();
  });

  it('are lost when the policy changes while the body arrives, but not when another token is revoked', async () => {
    const { policies, registry, tokenWith, ask } = await setup();
    const [token, other] = [await tokenWith(grants), await tokenWith(grants)];
    expect(await ask(other, 'transit/hmac/k')).to.equal(204);
    expect(await ask(token, 'transit/hmac/k', {}, () => registry.revoke({ token: other }))).to.equal(204);
    expect(await ask(token, 'transit/hmac/k', {}, () => policies.delete('p'))).to.equal(403);
  });

  it('end with the last use of a token with limited uses; refused requests count as uses', async () => {
    const { tokenWith, ask } = await setup();
    const token = await tokenWith(grants, { numUses: 3 });
    const answers = [];
    for (const path of ['transit/hmac/k', 'transit/other', 'transit/hmac/k', 'transit/hmac/k'])
      answers.push(await ask(token, path));
    expect(answers).to.deep.equal([204, 403, 204, 403]);
  });
});

describe('data that has no JSON form', () => {
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  it('is answered as an internal error, not with the end of the process', async () => {
    const { rootToken, ask } = await setup({ run: () => dataReply({ index: 1n }) });
    expect(await ask(rootToken, 'transit/x')).to.equal(500);
  });
});
