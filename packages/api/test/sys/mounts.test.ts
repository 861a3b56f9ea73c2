import { recordsOf, sweepRemovedMounts } from '@transitd/node';
import { expect } from 'chai';
import { follow } from '../../../node/test/mounts/mounted.ts';
import { type Served, served } from '../served.ts';

const plaintext = Buffer.from('fox').toString('base64');

describe('the endpoints of mounts', () => {
  let server: Served;
  beforeEach(async () => {
    server = await served();
  });
  afterEach(() => server.close());

  const enable = (path: string, body: object = { type: 'transit' }) => server.ask(`POST sys/mounts/${path}`, { body });
  const tokenWith = async (policy: string): Promise<string> => {
    await server.ask('POST sys/policies/acl/p', { body: { policy } });
    const answer = await server.ask('POST auth/token/create', { body: { policies: ['p'], no_default_policy: true } });
    return answer.body.auth.client_token;
  };

  it('serve a mount whose path has several segments on every route, with its own keys', async () => {
    expect((await enable('team/transit')).status).to.equal(204);
    expect((await server.ask('POST team/transit/keys/k', { body: {} })).status).to.equal(200);
    const { body } = await server.ask('POST team/transit/encrypt/k', { body: { plaintext } });
    const { ciphertext } = body.data;
    const opened = await server.ask('POST team/transit/decrypt/k', { body: { ciphertext } });
    expect(opened.body.data.plaintext).to.equal(plaintext);
    expect((await server.ask('POST transit/decrypt/k', { body: { ciphertext } })).status).to.equal(400);
    for (const list of ['keys', 'keys/'])
      expect((await server.ask(`GET team/transit/${list}?list=true`)).body.data.keys).to.deep.equal(['k']);
    expect((await server.ask('GET team/transit/keys/k')).body.data.name).to.equal('k');
    expect((await server.ask('POST team/transit/nothing/k', { body: {} })).text).to.contain('unsupported path');
    expect((await server.ask('GET team/transit/encrypt/k')).status).to.equal(405);
    for (const path of ['team/keys/k', 'team%2Ftransit/keys/k', 'team', 'transit/keys/k'])
      expect((await server.ask(`GET ${path}`)).status, path).to.equal(path.includes('%') ? 400 : 404);
  });

  it('check policies on the whole path', async () => {
    await enable('team/transit');
    await server.ask('POST team/transit/keys/k', { body: {} });
    const token = await tokenWith(
      'path "team/transit/hmac/*" { capabilities = ["update"] }\npath "team/transit/hmac/k/sha1" { capabilities = ["deny"] }',
    );
    const body = { input: plaintext };
    expect((await server.ask('POST team/transit/hmac/k', { token, body })).status).to.equal(200);
    expect((await server.ask('POST team/transit/hmac/k/sha1', { token, body })).status).to.equal(403);
    expect((await server.ask('POST team/transit/hmac/k', { token, body: { ...body, algorithm: 'sha1' } })).status).to.equal(403);
    expect((await server.ask('POST team/transit/encrypt/k', { token, body: { plaintext } })).status).to.equal(403);
  });

  it('compare a path of several segments as one value with denied parameters', async () => {
    await enable('team/transit');
    for (const [denied, status] of [
      ['team/transit', 403],
      ['transit', 200],
    ] as const) {
      const token = await tokenWith(
        `path "sys/mounts/*" { capabilities = ["read", "sudo"] denied_parameters = { path = ["${denied}"] } }`,
      );
      expect((await server.ask('GET sys/mounts/team/transit', { token })).status, denied).to.equal(status);
    }
  });

  it('unmount at once; a new mount at the same path has none of the old keys', async () => {
    await enable('x');
    await server.ask('POST x/keys/k', { body: {} });
    const [, { id = '' } = {}] = server.services.mounts.list;
    expect((await server.ask('DELETE sys/mounts/x')).status).to.equal(204);
    for (const line of ['GET x/keys/k', 'POST x/encrypt/k', 'POST x/keys/l']) {
      const answer = await server.ask(line, line.startsWith('POST') ? { body: { plaintext } } : {});
      expect(answer.status, line).to.equal(404);
      expect(answer.text).to.contain('no handler for route');
    }
    await enable('x');
    expect((await server.ask('GET x/keys/k')).status).to.equal(404);
    await sweepRemovedMounts(server.store, 100);
    expect((await server.store.range({ prefix: recordsOf(id) })).records).to.deep.equal([]);
  });

  it('move a mount with its keys, and report it', async () => {
    await server.ask('POST transit/keys/k', { body: {} });
    const { body } = await server.ask('POST transit/encrypt/k', { body: { plaintext } });
    const moved = await server.ask('POST sys/remount', { body: { from: 'transit/', to: '/new/place' } });
    expect(moved.status).to.equal(200);
    const id = moved.body.data.migration_id;
    expect(moved.body.migration_id, 'at the top level too').to.equal(id);
    const status = await server.ask(`GET sys/remount/status/${id}`);
    expect(status.body.data).to.deep.equal({
      migration_id: id,
      migration_info: { source_mount: 'transit/', target_mount: 'new/place/', status: 'success' },
    });
    expect((await server.ask('GET sys/remount/status/none')).status).to.equal(404);
    const opened = await server.ask('POST new/place/decrypt/k', { body: { ciphertext: body.data.ciphertext } });
    expect(opened.body.data.plaintext).to.equal(plaintext);
    expect((await server.ask('GET transit/keys/k')).text).to.contain('no handler for route');
  });

  for (const { line, body, status, says } of [
    { line: 'POST sys/mounts/x', body: {}, status: 400, says: 'backend type must be specified as a string' },
    { line: 'POST sys/mounts/x', body: { type: 'kv' }, status: 400, says: 'plugin not found in the catalog: kv' },
    { line: 'POST sys/mounts/sys', body: { type: 'transit' }, status: 400, says: 'cannot mount \\"sys/\\"' },
    { line: 'POST sys/mounts/transit', body: { type: 'transit' }, status: 400, says: 'path is already in use at transit/' },
    { line: 'POST sys/mounts/transit/x', body: { type: 'transit' }, status: 400, says: 'path is already in use at transit/' },
    { line: 'POST sys/mounts/x', body: { type: 'transit', config: [1] }, status: 400, says: 'expected an object' },
    {
      line: 'POST sys/mounts/x',
      body: { type: 'transit', options: ['a'] },
      status: 400,
      says: 'expected an object with string values',
    },
    { line: 'DELETE sys/mounts/sys', body: undefined, status: 400, says: 'cannot unmount \\"sys/\\"' },
    { line: 'GET sys/mounts/x', body: undefined, status: 400, says: 'No secret engine mount at x/' },
    { line: 'GET sys/mounts/x/y/tune', body: undefined, status: 400, says: 'No secret engine mount at x/y/' },
    { line: 'POST sys/mounts/x/tune', body: {}, status: 400, says: 'No secret engine mount at x/' },
    { line: 'POST sys/mounts/transit/tune', body: { ciphertext_prefix: 'A' }, status: 400, says: 'ciphertext_prefix has' },
    { line: 'POST sys/mounts/transit/tune', body: { allowed_managed_keys: {} }, status: 400, says: 'expected a list of strings' },
    { line: 'POST sys/remount', body: {}, status: 400, says: 'must be given' },
    { line: 'POST sys/remount', body: { from: 'x', to: 'y' }, status: 400, says: 'No secret engine mount at x/' },
    { line: 'DELETE sys/mounts/x', body: undefined, status: 204, says: '' },
  ]) {
    it(`answer ${line} ${JSON.stringify(body) ?? ''} with ${status} ${says}`, async () => {
      const answer = await server.ask(line, { body });
      expect(answer.status).to.equal(status);
      expect(answer.text).to.contain(says);
      expect(server.services.mounts.list.map(({ path }) => path)).to.deep.equal(['transit']);
    });
  }

  it('show the settings of a mount, and accept the fields that command-line clients send', async () => {
    const config = {
      default_lease_ttl: '0s',
      max_lease_ttl: '1h',
      force_no_cache: false,
      options: null,
      ciphertext_prefix: 'vault',
    };
    const body = { type: 'transit', description: 'two', config, local: true, seal_wrap: false, options: { version: 2 } };
    expect((await enable('x', body)).status).to.equal(204);
    const { body: read } = await server.ask('GET sys/mounts/x');
    const shown = read.data;
    expect(read, 'also at the top level').to.deep.include(shown);
    expect(shown).to.deep.include({
      type: 'transit',
      description: 'two',
      local: true,
      seal_wrap: false,
      options: { version: '2' },
    });
    expect(shown.config).to.deep.include({ default_lease_ttl: 0, max_lease_ttl: 3600, ciphertext_prefix: 'vault' });
    const list = (await server.ask('GET sys/mounts')).body;
    expect(list['x/']).to.deep.equal(shown);
    expect(list.data).to.have.all.keys('transit/', 'x/', 'sys/');
    const ui = (await server.ask('GET sys/internal/ui/mounts')).body.data.secret;
    expect(ui['x/']).to.deep.equal({ type: 'transit', description: 'two', options: { version: '2' } });
    const below = (await server.ask('GET sys/internal/ui/mounts/x/keys/k')).body.data;
    expect(below).to.deep.equal({ ...shown, path: 'x/' });
  });

  it('take an empty list, which some clients send, as an empty object', async () => {
    expect((await enable('x', { type: 'transit', config: [], options: [] })).status).to.equal(204);
    expect((await server.ask('GET sys/mounts/x')).body.data.options).to.equal(null);
  });

  it('warn that seal_wrap has no effect', async () => {
    const answer = await enable('x', { type: 'transit', seal_wrap: true });
    expect(answer.body.warnings[0]).to.contain('no effect');
  });

  it('change only given settings, keep a TTL for an empty string, and reset it for "system"', async () => {
    const tune = (body: object) => server.ask('POST sys/mounts/transit/tune', { body });
    const tuned = async () => (await server.ask('GET sys/mounts/transit/tune')).body.data;
    const before = await tuned();
    const change = { default_lease_ttl: '30m', max_lease_ttl: '1h', description: 'd', allowed_managed_keys: 'a, b' };
    expect((await tune(change)).status).to.equal(204);
    expect((await tune({ default_lease_ttl: '', max_lease_ttl: null })).status).to.equal(204);
    const after = await tuned();
    expect(after).to.deep.include({ default_lease_ttl: 1800, max_lease_ttl: 3600, description: 'd' });
    expect(after.allowed_managed_keys).to.deep.equal(['a', 'b']);
    expect((await tune({ description: null })).status).to.equal(204);
    expect((await tuned()).description).to.equal('');
    const back = { default_lease_ttl: 'system', max_lease_ttl: 'system', description: '', allowed_managed_keys: [] };
    expect((await tune(back)).status).to.equal(204);
    expect(await tuned()).to.deep.equal(before);
  });

  it('write with the tuned prefix, and warn if the previous prefix is no longer accepted', async () => {
    const tune = (ciphertext_prefix: string) => server.ask('POST sys/mounts/transit/tune', { body: { ciphertext_prefix } });
    await server.ask('POST transit/keys/k', { body: {} });
    const encrypt = async () => (await server.ask('POST transit/encrypt/k', { body: { plaintext } })).body.data.ciphertext;
    const decrypt = async (ciphertext: string) => (await server.ask('POST transit/decrypt/k', { body: { ciphertext } })).status;
    const first = await encrypt();
    expect((await tune('mine')).status).to.equal(204);
    const mine = await encrypt();
    expect(mine).to.match(/^mine:v1:/);
    expect([await decrypt(first), await decrypt(mine)]).to.deep.equal([200, 200]);
    expect((await tune('other')).body.warnings[0]).to.contain('mine:');
    expect([await decrypt(first), await decrypt(mine)]).to.deep.equal([200, 400]);
  });

  it('require capabilities on the path of the mount, and sudo to move one', async () => {
    const token = await tokenWith(
      'path "sys/mounts/mine" { capabilities = ["create", "update"] }\npath "sys/remount" { capabilities = ["update"] }',
    );
    const body = { type: 'transit' };
    expect((await server.ask('POST sys/mounts/mine', { token, body })).status).to.equal(204);
    expect((await server.ask('POST sys/mounts/other', { token, body })).status).to.equal(403);
    expect((await server.ask('DELETE sys/mounts/mine', { token })).status).to.equal(403);
    expect((await server.ask('GET sys/mounts', { token })).status).to.equal(403);
    expect((await server.ask('POST sys/mounts/mine/tune', { token, body: {} })).status).to.equal(403);
    expect((await server.ask('POST sys/remount', { token, body: { from: 'mine', to: 'm' } })).status).to.equal(403);
  });

  it('hold later requests until a change is in force', async () => {
    await enable('x');
    await server.ask('POST x/keys/k', { body: {} });
    const { get } = server.store;
    const held = Promise.withResolvers<void>();
    server.store.get = async (path) => {
      if (path === 'core/mounts') await held.promise;
      return get.call(server.store, path);
    };
    // Another node of the cluster makes the change. This node has applied the change but has not read it yet.
    const other = await follow({ ...server.store, get });
    await other.remount({ from: 'x', to: 'y' });
    const { mounts } = server.services;
    Object.defineProperty(mounts, 'changing', {
      get() {
        held.resolve();
        return Reflect.get(Object.getPrototypeOf(mounts), 'changing', mounts);
      },
    });
    // A lookup before the change is read would find no mount there.
    expect((await server.ask('GET y/keys/k')).status).to.equal(200);
    expect((await server.ask('GET x/keys/k')).status).to.equal(404);
    other.close();
  });

  it('apply a cache size on every node with a reload, selected by type or by path', async () => {
    await enable('team/transit');
    const other = await follow(server.store);
    const resized: string[] = [];
    for (const [path, engine] of other.engines) engine.open = async () => void resized.push(path);
    const reload = (body: object) => server.ask('POST sys/plugins/reload/backend', { body });
    expect((await reload({ mounts: ['team/transit/'] })).body.data.reload_id).to.be.a('string');
    expect(resized).to.deep.equal(['team/transit']);
    expect((await reload({ plugin: 'transit', mounts: null, scope: '' })).status).to.equal(200);
    expect(resized).to.deep.equal(['team/transit', 'transit', 'team/transit']);
    expect((await reload({ mounts: ['team'] })).status).to.equal(400);
    other.close();
  });
});
