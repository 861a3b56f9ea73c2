// @live
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type AuditDevices, ensureAuditKey } from '@transitd/audit';
import type { Node } from '@transitd/node';
import { expect } from 'chai';
import { allRoutes } from '../../src/routes.ts';
import { MemoryDevices } from '../memory-devices.ts';
import { type Ask, type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

const hash = /^hmac-sha256:[0-9a-f]{64}$/;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('the audit of requests', () => {
  let devices: MemoryDevices;
  let server: Served;
  let ask: Ask;

  const start = async (options: Parameters<typeof served>[0] = {}): Promise<void> => {
    devices = new MemoryDevices();
    server = await served({ ...options, audit: devices as unknown as AuditDevices });
    ask = server.ask;
  };
  afterEach(() => server?.close());

  it('leaves out no operation but those that the documentation names', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/audit.md'), 'utf8');
    const named = /^These are not audited: [\s\S]*?\n\n/m.exec(page)?.[0].match(/(?<=`)sys\/[^`]+/g) ?? [];
    const unaudited = allRoutes(new TestMetrics()).filter(({ operations }) =>
      Object.values(operations).some((operation) => 'unaudited' in operation),
    );
    expect(['sys/health', ...unaudited.map(({ path }) => path)].toSorted()).to.deep.equal(named.toSorted());
  });

  it('writes a pair of entries with the request id, the caller, the request and its address', async () => {
    await start();
    const { body } = await ask('POST transit/keys/k');
    const { asked, answered } = devices.pair;
    expect(asked.request.id).to.equal(body.request_id);
    expect(asked.auth).to.include({ display_name: 'root', token_type: 'service' });
    expect(asked.auth.policies).to.deep.equal(['root']);
    for (const text of [asked.auth.client_token, asked.auth.accessor, asked.request.client_token]) expect(text).to.match(hash);
    expect(asked.request).to.include({
      operation: 'update',
      path: 'transit/keys/k',
      mount_point: 'transit/',
      mount_type: 'transit',
    });
    expect(asked.request).to.include({ remote_address: '127.0.0.1' }).and.to.have.property('remote_port').that.is.a('number');
    expect(asked.request.namespace).to.deep.equal({ id: 'root', path: '' });
    expect(answered.response).to.include({ mount_type: 'transit', status: 200 });
    expect(answered.response.data).to.include({ type: 'aes256-gcm96', latest_version: 1, exportable: false });
    expect(answered.response.data.name).to.match(hash);
    expect(devices.lines).to.have.length(2);
  });

  it('tells a question what a path is for from a read of it', async () => {
    await start();
    for (const [query, operation] of [
      ['', 'read'],
      ['?help=1', 'help'],
    ] as const) {
      await ask(`GET transit/keys/k${query}`);
      expect(devices.pair.asked.request).to.include({ operation, path: 'transit/keys/k' });
    }
  });

  it('names the mount as its list does; sys/ and auth/token/ have no accessor', async () => {
    await start();
    await ask('POST sys/auth/people', { body: { type: 'userpass' } });
    const ofMount = async (request: string) => {
      await ask(request);
      const { asked, answered } = devices.pair;
      const [ofRequest, ofResponse] = [asked.request, answered.response].map((part) =>
        ['point', 'type', 'class', 'accessor'].map((name) => part[`mount_${name}`]),
      );
      expect(ofResponse).to.deep.equal(ofRequest);
      return ofRequest;
    };
    const { accessor } = (await ask('GET sys/mounts/transit')).body.data;
    expect(await ofMount('GET transit/keys/k')).to.deep.equal(['transit/', 'transit', 'secret', accessor]);
    const people = (await ask('GET sys/auth/people')).body.data.accessor;
    expect(await ofMount('GET auth/people/users/ann')).to.deep.equal(['auth/people/', 'userpass', 'auth', people]);
    expect(await ofMount('GET sys/mounts')).to.deep.equal(['sys/', 'system', 'secret', undefined]);
    expect(await ofMount('GET auth/token/lookup-self')).to.deep.equal(['auth/token/', 'token', 'auth', undefined]);
    expect(await ofMount('GET nothing/there')).to.deep.equal(['', '', undefined, undefined]);
  });

  it('shows a string as the hash that sys/audit-hash returns for the device, different for each device', async () => {
    await start();
    await ask('POST transit/keys/k');
    const plaintext = base64('a text');
    await ask('POST transit/encrypt/k', { body: { batch_input: [{ plaintext }] } });
    const { asked } = devices.pair;
    const of = async (device: string) =>
      (await ask(`POST sys/audit-hash/${device}`, { body: { input: plaintext } })).body.data.hash;
    expect(asked.request.data.batch_input[0].plaintext)
      .to.equal(await of('main'))
      .and.not.to.equal(await of('second'));
    expect((await ask('POST sys/audit-hash/none', { body: { input: 'x' } })).status).to.equal(400);
    expect((await ask('POST sys/audit-hash/main', { body: {} })).status).to.equal(400);
  });

  it('hashes names of undeclared members: a secret may be sent as a name', async () => {
    await start();
    await ask('POST transit/keys/k');
    const secret = 'hunter2-of-great-value';
    const raw = async (path: string, body: string, type: string): Promise<void> => {
      const headers = { 'X-Service-Token': server.rootToken, 'Content-Type': type };
      await fetch(new URL(`/v1/${path}`, server.url), { method: 'POST', headers, body });
    };
    await raw('transit/encrypt/k', secret, 'application/x-www-form-urlencoded');
    await raw('transit/encrypt/k', `plaintext=AAAA&${secret}=x`, 'application/x-www-form-urlencoded');
    await raw('sys/policies/acl/p', secret, 'application/x-www-form-urlencoded');
    await raw('auth/userpass/login/ann', secret, 'application/x-www-form-urlencoded');
    await ask('POST transit/encrypt/k', { body: { [secret]: 1, batch_input: [{ plaintext: 'AAAA', [secret]: true }] } });
    await ask('POST transit/encrypt/k', { body: { plaintext: { [secret]: { [secret]: 'x' } } } });
    await ask(`GET transit/keys/k?${secret}`);
    expect(devices.lines.join('\n')).not.to.contain(secret);
    const shown = devices.lines.map((line) => JSON.parse(line).request.data).filter((data) => data !== undefined);
    expect(
      shown.map((data) => Object.keys(data)).find((names) => names.includes('plaintext')),
      'declared names are shown',
    ).to.have.length(2);
    const [item] = shown.find((data) => data.batch_input !== undefined).batch_input;
    expect(Object.keys(item)).to.have.length(2).and.to.include('plaintext');
    expect(Object.keys(item).filter((name) => hash.test(name))).to.have.length(1);
  });

  it('shows the names of the claims that a role requires, which are configuration, in the request and in the response', async () => {
    await start();
    await ask('POST sys/auth/ci', { body: { type: 'jwt' } });
    const role = { role_type: 'jwt', user_claim: 'sub', bound_audiences: ['transitd'], bound_claims: { project: ['blue'] } };
    expect((await ask('POST auth/ci/role/build', { body: role })).status).to.equal(204);
    expect((await ask('GET auth/ci/role/build')).status).to.equal(200);
    const entries = devices.lines.map((line) => JSON.parse(line)).filter(({ request }) => request.path === 'auth/ci/role/build');
    const claims = entries.flatMap(({ request, response }) => [request.data?.bound_claims, response?.data?.bound_claims]);
    const shown = claims.filter((each) => each !== undefined);
    expect(shown).to.have.length(3);
    for (const each of shown) {
      expect(Object.keys(each)).to.deep.equal(['project']);
      expect(JSON.stringify(each)).not.to.contain('blue');
    }
  });

  const refusals = [
    { what: 'without a token', line: 'GET transit/keys/k', token: null, status: 403, error: /permission denied/ },
    {
      what: 'with an invalid token',
      line: 'GET transit/keys/k',
      token: 's.nothing',
      status: 403,
      error: /permission denied/,
    },
    { what: 'that names nothing', line: 'POST transit/encrypt/none/x', status: 404, error: /unsupported path/ },
    {
      what: 'that is not understood',
      line: 'POST transit/encrypt/k',
      body: { plaintext: 'no base64!' },
      status: 400,
      error: /./,
    },
    {
      what: 'to make a sink',
      line: 'POST sys/audit/new',
      body: { type: 'file' },
      status: 400,
      error: /^cannot enable audit device via API/,
    },
    { what: 'to remove a sink', line: 'DELETE sys/audit/main', status: 400, error: /^cannot disable audit device via API/ },
    {
      what: 'to log in with a wrong password',
      line: 'POST auth/people/login/ann',
      token: null,
      body: { password: 'x' },
      status: 400,
      error: /./,
    },
  ] as const;
  for (const { what, line, status, error, ...options } of refusals) {
    it(`writes a pair of entries for a request ${what}`, async () => {
      await start();
      await ask('POST transit/keys/k');
      await ask('POST sys/auth/people', { body: { type: 'userpass' } });
      devices.lines.length = 0;
      expect((await ask(line, options)).status).to.equal(status);
      expect(devices.lines).to.have.length(2);
      expect(devices.pair.answered.error).to.match(error);
      expect(devices.pair.answered.response.status).to.equal(status);
    });
  }

  it('writes a pair of entries for malformed JSON and for a denied request', async () => {
    await start();
    await ask('POST sys/policies/acl/p', { body: { policy: 'path "x" { capabilities = ["read"] }' } });
    const { body } = await ask('POST auth/token/create', { body: { policies: ['p'] } });
    const token = body.auth.client_token;
    expect(devices.pair.answered.response.auth).to.include({ token_type: 'service', lease_duration: body.auth.lease_duration });
    expect(devices.pair.answered.response.auth.client_token).to.match(hash);
    expect((await ask('GET transit/keys/k', { token })).status).to.equal(403);
    expect(devices.pair.answered)
      .to.have.property('error')
      .that.matches(/permission denied/);
    expect(devices.pair.asked.auth.policies).to.deep.equal(['default', 'p']);
  });

  it('writes no entries for probes', async () => {
    await start();
    for (const path of ['sys/health', 'sys/seal-status', 'sys/init']) await ask(`GET ${path}`, { token: null });
    expect(devices.lines).to.deep.equal([]);
  });

  it('shows the wrapping of a response, and the response itself when it is unwrapped', async () => {
    await start();
    const wrapped = await ask('POST auth/token/create', { body: { ttl: '1h' }, headers: { 'X-Service-Wrap-TTL': '60' } });
    const { token } = wrapped.body.wrap_info;
    const { asked, answered } = devices.pair;
    expect(asked.request.wrap_ttl).to.equal(60);
    expect(answered.response.wrap_info).to.include({ ttl: 60, creation_path: 'auth/token/create' });
    for (const name of ['token', 'accessor', 'wrapped_accessor']) expect(answered.response.wrap_info[name], name).to.match(hash);
    const fetched = await ask('POST sys/wrapping/unwrap', { token });
    expect(fetched.body.request_id).to.equal(devices.pair.asked.request.id);
    expect(devices.pair.answered.response.auth.client_token).to.match(hash);
  });

  it('shows no name of a wrapped member, neither when it is wrapped nor when it is unwrapped', async () => {
    await start();
    const body = { 'a-name': { 'an-inner-name': 1 }, list: [{ 'a-name-in-a-list': 2 }] };
    const wrapped = await ask('POST sys/wrapping/wrap', { body, headers: { 'X-Service-Wrap-TTL': '60' } });
    const fetched = await ask('POST sys/wrapping/unwrap', { body: { token: wrapped.body.wrap_info.token } });
    expect(fetched.body.data).to.deep.equal(body);
    const { data } = devices.pair.answered.response;
    for (const name of Object.keys(data)) expect(name).to.match(hash);
    expect(devices.lines.join('\n')).not.to.match(/an?-(?:inner-)?name/);
  });

  it('shows no path whose capabilities were asked: a token may have been sent in its place', async () => {
    await start();
    const { client_token: token, accessor } = (await ask('POST auth/token/create')).body.auth;
    for (const word of ['capabilities', 'capabilities-self', 'capabilities-accessor']) {
      const { body } = await ask(`POST sys/${word}`, {
        body: { token, accessor, paths: ['s.pasted-by-mistake', 'transit/keys/k'] },
      });
      expect(body.data, word).to.have.all.keys('s.pasted-by-mistake', 'transit/keys/k');
      for (const name of Object.keys(devices.pair.answered.response.data)) expect(name, word).to.match(hash);
    }
    expect(devices.lines.join('\n')).not.to.include('pasted-by-mistake');
  });

  it('names the forwarding node and the client that it reports, only on the cluster port', async () => {
    const headers = { 'x-transitd-forwarded-by': 'n2', 'x-transitd-caller': '192.0.2.7' };
    await start();
    await ask('GET sys/policy', { headers });
    expect(devices.pair.asked).not.to.have.property('forwarded_from');
    expect(devices.pair.asked.request.remote_address).to.equal('127.0.0.1');
    server.close();
    await start({ forwarded: true });
    await ask('GET sys/policy', { headers });
    expect(devices.pair.asked.forwarded_from).to.equal('n2');
    expect(devices.pair.asked.request).to.include({ remote_address: '192.0.2.7' }).and.not.to.have.property('remote_port');
  });

  it('executes nothing, and says so, if no device accepts the first entry', async () => {
    await start();
    devices.failing = 'request';
    const answer = await ask('POST transit/keys/k');
    expect(answer.status).to.equal(503);
    expect(answer.body.errors).to.deep.equal(['audit: no audit device could write the entry of this request: nothing was done']);
    expect((await ask('GET sys/seal-status', { token: null })).status).to.equal(200);
    devices.failing = undefined;
    expect((await ask('GET transit/keys/k')).status).to.equal(404);
  });

  it('executes nothing, and says why, while the cluster has no audit key', async () => {
    await start();
    await server.store.commit({ conditions: [], writes: [{ path: 'core/audit-key', value: null }] });
    expect((await ask('POST transit/keys/k')).status).to.equal(503);
    expect([devices.lines.length, devices.buildFailures]).to.deep.equal([0, 1]);
    await ensureAuditKey(server.store);
    expect((await ask('GET transit/keys/k')).status).to.equal(404);
  });

  it('does not count a use of a token if its request was not recorded', async () => {
    await start();
    await ask('POST sys/policies/acl/p', { body: { policy: 'path "transit/keys/*" { capabilities = ["read"] }' } });
    const token = (await ask('POST auth/token/create', { body: { policies: ['p'], num_uses: 1 } })).body.auth.client_token;
    devices.failing = 'request';
    expect((await ask('GET transit/keys/k', { token })).status).to.equal(503);
    devices.failing = undefined;
    expect((await ask('GET transit/keys/k', { token })).status).to.equal(404);
    expect((await ask('GET transit/keys/k', { token })).status).to.equal(403);
  });

  it('reports that a request took effect if only its response could not be recorded', async () => {
    await start();
    devices.failing = 'response';
    const answer = await ask('POST transit/keys/k');
    expect([answer.status, answer.body.errors[0]]).to.deep.equal([
      503,
      'audit: no audit device could write the entry of this request: the request took effect, but its response is withheld',
    ]);
    expect((await ask('GET transit/keys/none')).body.errors[0]).to.match(/: the request was refused$/);
    devices.failing = undefined;
    expect((await ask('GET transit/keys/k')).status).to.equal(200);
  });

  it('revokes the token of a login whose response could not be recorded', async () => {
    await start();
    await ask('POST sys/auth/people', { body: { type: 'userpass' } });
    await ask('POST auth/people/users/ann', { body: { password: 'a good password' } });
    const before = (await ask('GET auth/token/accessors?list=true')).body.data.keys;
    devices.failing = 'response';
    expect((await ask('POST auth/people/login/ann', { token: null, body: { password: 'a good password' } })).status).to.equal(
      503,
    );
    devices.failing = undefined;
    expect((await ask('GET auth/token/accessors?list=true')).body.data.keys).to.have.members(before);
  });

  it('revokes the token in a wrapped response that could not be recorded', async () => {
    await start();
    const { wrapping, registry } = server.services;
    const { wrap } = wrapping;
    let wrapped = '';
    wrapping.wrap = (answer) => {
      wrapped = answer.wrappedAccessor;
      return wrap.call(wrapping, answer);
    };
    devices.failing = 'response';
    expect((await ask('POST auth/token/create', { headers: { 'X-Service-Wrap-TTL': '60' } })).status).to.equal(503);
    expect(wrapped).not.to.equal('');
    expect(await registry.accessors()).not.to.include(wrapped);
  });

  it('revokes a generated root token if its response could not be recorded', async () => {
    await start();
    const status = { started: true, nonce: 'n', progress: 1, required: 1 };
    const update = async (_: unknown, make: () => Promise<string>) => ({
      complete: true,
      status,
      masked: Buffer.from(await make()),
    });
    server.node.member = { barrier: { rootGeneration: { update } } } as unknown as NonNullable<Node['member']>;
    const give = () => ask('POST sys/generate-root/update', { token: null, body: { key: '00', nonce: 'n' } });
    const accessors = async () => (await ask('GET auth/token/accessors?list=true')).body.data.keys;
    const before = await accessors();
    devices.failing = 'response';
    expect((await give()).status).to.equal(503);
    devices.failing = undefined;
    expect(await accessors()).to.have.members(before);
    expect((await give()).status).to.equal(200);
    expect(await accessors()).to.have.length(before.length + 1);
  });

  it('does not execute an open request that began before the node was unsealed, since it has no first entry', async () => {
    await start();
    let begun = 0;
    const begin = async () => {
      begun += 1;
      return { started: true, nonce: 'n', progress: 0, required: 1 };
    };
    server.node.member = { barrier: { rootGeneration: { start: begin } } } as unknown as NonNullable<Node['member']>;
    server.node.services = undefined;
    const { port, hostname } = server.url;
    const socket = connect(Number(port), hostname);
    const body = '{"otp":""}';
    const head = `POST /v1/sys/generate-root/attempt HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}`;
    socket.write(`${head}\r\nExpect: 100-continue\r\n\r\n`);
    await once(socket, 'data');
    server.node.services = server.services;
    socket.end(body);
    expect(await text(socket)).to.match(/^HTTP\/1.1 503 /);
    expect([begun, devices.lines.length]).to.deep.equal([0, 0]);
  });

  it('writes the first entry before execution, and both before the response', async () => {
    await start();
    const seen: unknown[] = [];
    const keys = () =>
      server.services.mounts.engines
        .get('transit')
        ?.readKey('k')
        .then(
          (key) => key !== undefined,
          () => false,
        );
    devices.before = (type) => seen.push(type, keys());
    await ask('POST transit/keys/k');
    expect(await Promise.all(seen)).to.deep.equal(['request', false, 'response', true]);
  });

  it('contains no secret of any request or response in plaintext', async () => {
    await start();
    const secrets = new Set<string>();
    let planted = 0;
    const plant = (): string => {
      planted += 1;
      const secret = `Planted${planted}Secret`;
      secrets.add(secret).add(base64(secret));
      return secret;
    };
    const secretFields = [
      'client_token',
      'accessor',
      'ciphertext',
      'plaintext',
      'token',
      'signature',
      'hmac',
      'backup',
      'secret_id',
      'id',
      'random_bytes',
      'role_id',
      'secret_id_accessor',
      'sum',
      'wrapped_accessor',
    ];
    /** Collects the secrets in responses; short strings, such as the ids of roles, are no secrets. */
    const harvest = (value: unknown, name = ''): void => {
      if (typeof value === 'string' && value.length >= 16 && secretFields.includes(name)) secrets.add(value);
      if (typeof value === 'object' && value !== null)
        for (const [member, inner] of Object.entries(value)) harvest(inner, Array.isArray(value) ? name : member);
    };
    const go = async (line: string, body?: object, options: { token?: string | null; headers?: Record<string, string> } = {}) => {
      const answer = await ask(line, { ...options, ...(body && { body }) });
      harvest(answer.body);
      return answer;
    };
    const token = (await go('POST auth/token/create', { meta: { note: plant() }, ttl: '1h' })).body.auth;
    await go('GET auth/token/lookup-self', undefined, { token: token.client_token });
    await go('POST auth/token/lookup', { token: token.client_token });
    await go('POST auth/token/lookup-accessor', { accessor: token.accessor });
    await go(`GET auth/token/lookup/${token.client_token}`);
    await go(`GET ${token.client_token}/x`);
    await go(`GET auth/token/lookup-self?token=${token.client_token}&x=${plant()}`);
    await go('POST auth/token/create', { id: `s.${plant()}`, policies: ['default'] });
    await go('POST auth/token/create', { type: 'batch', policies: ['default'] });
    await go('GET auth/token/accessors?list=true');
    await go('POST sys/policies/acl/p', { policy: `path "${plant()}" { capabilities = ["read"] }` });
    await go('GET sys/policies/acl/p');
    await go('POST sys/auth/people', { type: 'userpass', description: plant() });
    const password = plant();
    await go('POST auth/people/users/ann', { password });
    await go('POST auth/people/login/ann', { password }, { token: null });
    await go('POST auth/people/login/ann', { password: plant() }, { token: null });
    await go('POST sys/auth/machines', { type: 'approle' });
    await go('POST auth/machines/role/web', { token_policies: ['p'] });
    const roleId = (await go('GET auth/machines/role/web/role-id')).body.data.role_id;
    const secretId = (await go('POST auth/machines/role/web/secret-id', { metadata: JSON.stringify({ a: plant() }) })).body.data
      .secret_id;
    expect((await go('POST auth/machines/login', { role_id: roleId, secret_id: secretId }, { token: null })).status).to.equal(
      200,
    );
    for (const [name, type] of [
      ['k', 'aes256-gcm96'],
      ['s', 'ed25519'],
      ['h', 'hmac'],
    ])
      await go(`POST transit/keys/${name}`, { type, exportable: true, allow_plaintext_backup: true });
    const { ciphertext } = (await go('POST transit/encrypt/k', { plaintext: base64(plant()), associated_data: base64(plant()) }))
      .body.data;
    await go('POST transit/decrypt/k', { ciphertext });
    const batch = [
      { plaintext: base64(plant()), reference: plant() },
      { plaintext: plant() },
      { plaintext: [plant()], x: { y: [plant()] } },
    ];
    await go('POST transit/encrypt/k', { batch_input: batch });
    await go('POST transit/encrypt/k', { batch_input: batch.slice(0, 2), partial_failure_response_code: 299 });
    await go('POST transit/rewrap/k', { ciphertext });
    await go('POST transit/datakey/plaintext/k', { context: base64(plant()) });
    await go('POST transit/datakeys/plaintext/k', { context: base64(plant()), count: 3 });
    await go('POST transit/sign/s', { input: base64(plant()) });
    await go('POST transit/verify/s', { input: base64(plant()), signature: plant() });
    await go('POST transit/hmac/k', { input: base64(plant()) });
    await go('GET transit/export/encryption-key/k').then(({ body }) => secrets.add(body.data.keys['1']));
    const { backup } = (await go('GET transit/backup/k')).body.data;
    await go('POST transit/restore/l', { backup });
    await go('POST transit/restore/m', { backup: plant() });
    await go('POST transit/keys/i/import', { ciphertext: base64(plant()), type: plant(), hash_function: plant() });
    await go('POST sys/tools/hash', { input: base64(plant()), algorithm: 'sha2-256' });
    await go('POST sys/tools/random', { bytes: plant(), format: plant() });
    await go('POST transit/encrypt/k', { plaintext: base64('x'), key_version: plant(), nonce: plant() });
    const { wrap_info: waits } = (
      await go('POST sys/wrapping/wrap', { a: plant(), n: { b: [plant()] } }, { headers: { 'X-Service-Wrap-TTL': '60' } })
    ).body;
    await go('POST sys/wrapping/lookup', { token: waits.token }, { token: null });
    expect((await go('POST sys/wrapping/unwrap', { token: waits.token }, { token: null })).status).to.equal(200);
    await go('POST sys/wrapping/unwrap', { token: waits.token }, { token: null });
    await go('GET transit/keys/k', undefined, { token: plant() });
    await go('POST transit/hmac/k', {
      input: plant(),
      algorithm: plant(),
      marshaling_algorithm: plant(),
      signature_algorithm: plant(),
    });

    // A message that shows only the beginning of the sent value.
    await go('POST transit/restore/m', { backup: `${plant()}${'x'.repeat(500)}` });

    const text = devices.lines.join('\n');
    expect(devices.lines.length % 2).to.equal(0);
    expect(devices.lines.length).to.be.greaterThan(90);
    expect([...secrets].filter((secret) => text.includes(secret))).to.deep.equal([]);
    expect(secrets.size).to.be.greaterThan(90);
    expect(text.includes(server.rootToken)).to.equal(false);
  });
});
