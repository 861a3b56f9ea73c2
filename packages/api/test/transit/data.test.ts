import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { initialAccess, openAccess, type Principal } from '@transitd/access';
import { AuditKey } from '@transitd/audit';
import { type Body, bodyText, encode, joined, parsePath, type Reply } from '@transitd/http';
import type { Services } from '@transitd/node';
import { systemClock } from '@transitd/process';
import { memoryStore } from '@transitd/storage-fsm';
import type { RandomSource } from '@transitd/transit-engine';
import { expect } from 'chai';
import { mounted } from '../../../node/test/mounts/mounted.ts';
import { MountRoutes } from '../../src/operation/mount-routes.ts';
import { transitDataRoutes } from '../../src/transit/data.ts';
import { exportedJson, transitTransferRoutes } from '../../src/transit/transfers.ts';

const fox = Buffer.from('the quick brown fox').toString('base64');

/**
 * A server with four keys and callers with different rights: `k` encrypts, `c` computes CMACs, `s` signs, and the derived key `d` signs.
 */
async function setup(sealRandom?: RandomSource) {
  const store = memoryStore();
  const { rootToken, writes } = initialAccess({ now: 0 });
  await store.commit({ conditions: [], writes });
  const { mounts, managedKeys, uses } = await mounted(store, 'mnt');
  const engine = mounts.engines.get('mnt');
  if (engine === undefined) throw new Error('no engine is mounted');
  await engine.createKey('k', { exportable: true });
  await engine.rotateKey('k');
  await engine.createKey('c', { type: 'aes128-cmac' });
  await engine.createKey('s', { type: 'ecdsa-p256' });
  await engine.createKey('d', { type: 'ed25519', derived: true });
  const access = openAccess({ store, clock: systemClock });
  const { tokens, policies } = access;
  const services: Services = { ...access, mounts, managedKeys, uses, auditKey: new AuditKey(store), sinceMs: 0, sealRandom };
  const root = await tokens.authenticate(rootToken);
  if (root === undefined) throw new Error('the root token is not good');

  const callerWith = async (policy: string): Promise<Principal> => {
    await policies.write('own', policy);
    return { ...root, root: false, acl: await policies.compile(['own']) };
  };
  const post = async (target: string, body: Body = {}, principal: Principal = root): Promise<Reply> => {
    const path = parsePath(`/v1/mnt/${target}`);
    const found = find(target);
    const operation = found?.route.operations.POST;
    if (found === undefined || operation?.access !== 'token') throw new Error(`no operation on data at ${target}`);
    const call = {
      verb: 'POST',
      path: path.path,
      written: path.path,
      params: found.params,
      query: path.query,
      body,
      address: '',
    } as const;
    return operation.run({ node: undefined as never, services, principal, token: rootToken }, call);
  };
  return { services, callerWith, post };
}

const dataOf = (reply: Reply): Record<string, unknown> => JSON.parse(bodyText(reply) ?? '').data;

const routes = new MountRoutes(transitDataRoutes.map((route) => ({ ...route, path: `:mount/${route.path}` })));
const find = (target: string) => routes.find(parsePath(`/v1/mnt/${target}`).segments, { path: 'mnt', depth: 1 });

describe('routes of operations on data', () => {
  for (const [target, name, params] of [
    ['encrypt/k', 'encrypt', { name: 'k' }],
    ['verify/k/sha2-512', 'verify', { name: 'k', urlalgorithm: 'sha2-512' }],
    ['sign/k', 'sign', { name: 'k' }],
    ['sign/k/sha2-512', 'sign', { name: 'k', urlalgorithm: 'sha2-512' }],
    ['hmac/k', 'hmac', { name: 'k' }],
    ['hmac/k/sha2-512', 'hmac', { name: 'k', urlalgorithm: 'sha2-512' }],
    ['cmac/k/8', 'cmac', { name: 'k', url_mac_length: '8' }],
    ['datakey/plaintext/k', 'datakey', { type: 'plaintext', name: 'k' }],
    ['datakeys/wrapped/k', 'datakeys', { type: 'wrapped', name: 'k' }],
    ['random', 'random', {}],
    ['random/16', 'random', { source: '16' }],
    ['random/platform/16', 'random', { source: 'platform', urlbytes: '16' }],
    ['hash', 'hash', {}],
    ['hash/sha2-512', 'hash', { urlalgorithm: 'sha2-512' }],
  ] as const) {
    it(`finds ${name} at ${target}`, () => {
      const found = find(target);
      expect(found?.route.operations.POST?.name).to.equal(name);
      expect(found?.params).to.deep.equal({ mount: 'mnt', ...params });
    });
  }

  for (const bytes of [1, 49_000, 49_200, 2_000_000])
    it(`answer the same whether or not a text of ${bytes} bytes is sent in parts`, async () => {
      const { post } = await setup();
      const plaintext = randomBytes(bytes).toString('base64');
      const whole = /^{"ciphertext":"svc:v2:[A-Za-z0-9+/]+={0,2}","key_version":2}$/;
      const [encrypted, unknown] = [await post('encrypt/k', { plaintext }), await post('encrypt/k', { plaintext, other: 'é' })];
      for (const reply of [encrypted, unknown, await post('rewrap/k', dataOf(encrypted) as Body)]) {
        const { ciphertext } = dataOf(reply);
        expect(whole.test(JSON.stringify(dataOf(reply)))).to.equal(true);
        const { body } = encode(await post('decrypt/k', { ciphertext: String(ciphertext) }));
        expect(typeof body).to.equal(bytes < 49_152 ? 'string' : 'object');
        expect(JSON.parse(joined(body ?? '')).data).to.deep.equal({ plaintext });
        const inBatch = await post('decrypt/k', { batch_input: [{ ciphertext: String(ciphertext) }] });
        expect(dataOf(inBatch)).to.deep.equal({ batch_results: [{ plaintext, reference: '' }] });
      }
    });

  it('draws random bytes of the seal, whether the path or the body names the source', async () => {
    const seal = { bytesMax: 1024, draw: async (bytes: number) => Buffer.alloc(bytes, 7) };
    const { post } = await setup(seal);
    const random_bytes = Buffer.alloc(3, 7).toString('base64');
    for (const [target, body] of [
      ['random/seal/3', {}],
      ['random/3', { source: 'seal' }],
      ['random', { source: 'seal', bytes: 3 }],
    ] as const)
      expect(dataOf(await post(target, body)), target).to.deep.equal({ random_bytes });
    expect(dataOf(await post('random/all/3'))).to.not.deep.equal({ random_bytes });
    expect(bodyText(await post('random/seal'))).to.include('"warnings":null');
    const without = await setup();
    expect(bodyText(await without.post('random/seal'))).to.include('no seal/entropy augmentation available');
  });

  for (const target of [
    'encrypt',
    'encrypt/k/x',
    'encrypt/a:b',
    'datakey/plaintext',
    'datakey/plaintext/a:b',
    'hash/a/b',
    'random/a/b/c',
    'keys/k',
  ]) {
    it(`do not include ${target}`, () => {
      expect(find(target)).to.equal(undefined);
    });
  }

  it('exist for every form of the paths', () => {
    expect(transitDataRoutes.map(({ path }) => path)).to.deep.equal([
      'encrypt/:name',
      'decrypt/:name',
      'rewrap/:name',
      'datakey/:type/:name',
      'datakeys/:type/:name',
      'hmac/:name',
      'hmac/:name/:urlalgorithm',
      'cmac/:name',
      'cmac/:name/:url_mac_length',
      'sign/:name',
      'sign/:name/:urlalgorithm',
      'verify/:name',
      'verify/:name/:urlalgorithm',
      'hash',
      'hash/:urlalgorithm',
      'random',
      'random/:source',
      'random/:source/:urlbytes',
    ]);
  });
});

describe('operations on data', () => {
  it('respond in the form that the specification defines', async () => {
    const { post } = await setup();
    const { hmac, ...beside } = dataOf(await post('hmac/k', { input: fox }));
    expect(hmac).to.match(/^svc:v2:/);
    expect(beside).to.deep.equal({ key_version: 2 });
    expect(dataOf(await post('verify/k', { input: fox, hmac: String(hmac) }))).to.deep.equal({ valid: true });
    const { signature, ...signed } = dataOf(await post('sign/s', { input: fox }));
    expect(signature).to.match(/^svc:v1:/);
    expect(signed).to.deep.equal({ key_version: 1 });
    expect(dataOf(await post('verify/s', { input: fox, signature: String(signature) }))).to.deep.equal({ valid: true });
    expect(dataOf(await post('sign/d', { input: fox, context: fox }))).to.have.all.keys('signature', 'key_version', 'public_key');
    expect(dataOf(await post('cmac/c/4', { input: fox, mac_length: 8 }))).to.have.all.keys('cmac', 'key_version');
    expect(dataOf(await post('datakey/wrapped/k'))).to.have.all.keys('ciphertext', 'key_version');
    expect(dataOf(await post('datakey/plaintext/k'))).to.have.all.keys('ciphertext', 'key_version', 'plaintext');
    for (const [kind, members] of [
      ['wrapped', ['ciphertext']],
      ['plaintext', ['ciphertext', 'plaintext']],
    ] as const) {
      const { key_pairs, ...beside } = dataOf(await post(`datakeys/${kind}/k`, { count: 3 }));
      expect(beside).to.deep.equal({ key_version: 2 });
      expect(key_pairs).to.have.lengthOf(3);
      for (const pair of key_pairs as readonly object[]) expect(pair).to.have.all.keys(members);
    }
    expect(dataOf(await post('hash/sha2-224', { input: '', algorithm: 'sha2-256' }))['sum']).to.have.lengthOf(56);
    expect(dataOf(await post('random/3', { format: 'hex' }))['random_bytes']).to.have.lengthOf(6);
  });

  it('answer a batch with failed items in the success envelope, with status 400 or the requested status', async () => {
    const { post } = await setup();
    const { hmac } = dataOf(await post('hmac/k', { input: fox }));
    const batch_input = [
      { input: fox, hmac: String(hmac), reference: 'a' },
      { input: '!!', hmac: String(hmac) },
    ];
    for (const [asked, status] of [
      [undefined, 400],
      [207, 207],
      [204, 400],
    ] as const) {
      const reply = await post('verify/k', { batch_input, ...(asked !== undefined && { partial_failure_response_code: asked }) });
      expect(reply.status).to.equal(status);
      expect(dataOf(reply)['batch_results']).to.deep.equal([
        { valid: true, reference: 'a' },
        { valid: false, error: 'unable to decode input as base64: illegal base64 data at input byte 0', reference: '' },
      ]);
    }
  });

  it('name the derived public key differently in a batch, and give a failed item version 0', async () => {
    const { post } = await setup();
    const reply = await post('sign/d', { batch_input: [{ input: fox, context: fox, reference: 'a' }, { input: fox }] });
    const [signed, failed] = dataOf(reply)['batch_results'] as readonly object[];
    expect(reply.status).to.equal(400);
    expect(signed).to.have.all.keys('signature', 'key_version', 'publickey', 'reference');
    expect(failed).to.include({ key_version: 0, reference: '' }).and.have.all.keys('key_version', 'error', 'reference');
  });

  it('answer a large batch with one valid text in pieces, in the order of the items', async () => {
    const { post } = await setup();
    const batch_input = Array.from({ length: 2_500 }, (_, index) => ({ input: fox, reference: `é${index}` }));
    const reply = await post('hmac/k', { batch_input });
    expect(Array.isArray(encode(reply).body)).to.equal(true);
    const results = dataOf(reply)['batch_results'] as readonly { reference: string; hmac: string }[];
    expect(results.map(({ reference }) => reference)).to.deep.equal(batch_input.map(({ reference }) => reference));
    const [one] = dataOf(await post('hmac/k', { batch_input: batch_input.slice(0, 1) }))['batch_results'] as typeof results;
    expect(new Set(results.map(({ hmac }) => hmac))).to.deep.equal(new Set([one?.hmac]));
  });

  it('yield to other requests while the response to a large batch is rendered', async () => {
    const { post } = await setup();
    const batch_input = Array.from({ length: 20_000 }, (_, index) => ({ input: fox, reference: String(index) }));
    let turns = 0;
    const count = setInterval(() => {
      turns += 1;
    }, 0);
    const results = dataOf(await post('hmac/k', { batch_input }))['batch_results'];
    clearInterval(count);
    expect(results).to.have.lengthOf(20_000);
    expect(turns).to.be.above(10);
  });
});

describe('the hash that verify uses', () => {
  const warning = 'These parameters have no effect because another value is in force: [algorithm]';
  const judged = async (post: (target: string, body: Body) => Promise<Reply>, target: string, body: Body) => {
    const reply = JSON.parse(bodyText(await post(target, { ...(!('batch_input' in body) && { input: fox }), ...body })) ?? '');
    return { valid: reply.data.valid ?? reply.data.batch_results[0].valid, warnings: reply.warnings };
  };

  it('is set for signatures by hash_algorithm or the path, as when signing; both ignore algorithm with a warning', async () => {
    const { post } = await setup();
    for (const [asked, warnings] of [
      [{}, null],
      [{ algorithm: 'sha2-256' }, null],
      [{ algorithm: 'sha2-512' }, [warning]],
      [{ algorithm: 'md5' }, [warning]],
    ] as const) {
      const signed = await post('sign/s', { input: fox, ...asked });
      const { signature } = dataOf(signed);
      expect(JSON.parse(bodyText(signed) ?? '').warnings).to.deep.equal(warnings);
      for (const [target, body] of [
        ['verify/s', {}],
        ['verify/s/sha2-256', {}],
        ['verify/s', { hash_algorithm: 'sha2-256' }],
      ] as const) {
        expect(await judged(post, target, { signature, ...body, ...asked } as Body)).to.deep.equal({ valid: true, warnings });
        const batch_input = [{ input: fox, signature }] as Body['x'];
        expect(await judged(post, target, { batch_input, ...body, ...asked } as Body)).to.deep.equal({ valid: true, warnings });
      }
    }
    const { signature } = dataOf(await post('sign/s', { input: fox, hash_algorithm: '', algorithm: 'sha2-512' }));
    expect(await judged(post, 'verify/s/sha2-512', { signature } as Body)).to.deep.equal({ valid: true, warnings: null });
  });

  it('is set for HMACs by the path, hash_algorithm or algorithm, as in the request that created the HMAC', async () => {
    const { post } = await setup();
    const { hmac } = dataOf(await post('hmac/k', { input: fox, algorithm: 'sha2-512' }));
    for (const [target, body, valid, warnings] of [
      ['verify/k', { algorithm: 'sha2-512' }, true, null],
      ['verify/k', { hash_algorithm: 'sha2-512' }, true, null],
      ['verify/k/sha2-512', { algorithm: 'sha2-256' }, true, [warning]],
      ['verify/k', { hash_algorithm: 'sha2-512', algorithm: 'sha2-256' }, true, [warning]],
      ['verify/k', {}, false, null],
      ['verify/k', { hash_algorithm: 'sha2-256', algorithm: 'sha2-512' }, false, [warning]],
    ] as const) {
      expect(await judged(post, target, { hmac, ...body } as Body)).to.deep.equal({ valid, warnings });
      const batch_input = [{ input: fox, hmac }] as Body['x'];
      expect(await judged(post, target, { batch_input, ...body } as Body)).to.deep.equal({ valid, warnings });
    }
  });
});

describe('a value that is denied by its path form', () => {
  const granted = 'path "mnt/*" { capabilities = ["update", "read"] }\n';
  for (const [denied, target, body] of [
    ['hmac/k/sha1', 'hmac/k', { input: fox, algorithm: 'sha1' }],
    ['hmac/k/sha2-256', 'hmac/k', { input: fox }],
    ['hmac/+/sha2-256', 'hmac/k', { input: fox }],
    ['verify/k/sha1', 'verify/k', { input: fox, hmac: 'svc:v1:AAAA', hash_algorithm: 'sha1' }],
    ['verify/k/sha1', 'verify/k', { input: fox, hmac: 'svc:v1:AAAA', algorithm: 'sha1' }],
    ['verify/k/sha1', 'verify/k', { batch_input: [{ input: fox, hmac: 'svc:v1:AAAA' }], algorithm: 'sha1' }],
    ['verify/s/sha1', 'verify/s', { input: fox, signature: 'svc:v1:AAAA', hash_algorithm: '', algorithm: 'sha1' }],
    ['verify/s/sha2-256', 'verify/s', { input: fox, signature: 'svc:v1:AAAA', algorithm: 'sha1' }],
    ['sign/s/sha1', 'sign/s', { input: fox, hash_algorithm: 'sha1' }],
    ['sign/s/sha2-256', 'sign/s', { input: fox, algorithm: 'sha1' }],
    ['sign/s/sha1', 'sign/s', { input: fox, hash_algorithm: '', algorithm: 'sha1' }],
    ['sign/+/sha2-256', 'sign/s', { input: fox }],
    ['sign/s/sha1', 'sign/s', { batch_input: [{ input: fox }], hash_algorithm: 'sha1' }],
    ['hash/sha2-224', 'hash', { input: fox, algorithm: 'sha2-224' }],
    ['cmac/c/8', 'cmac/c', { input: fox, mac_length: '0x8' }],
    ['cmac/c/8', 'cmac/c/0x8', { input: fox }],
    ['cmac/c/16', 'cmac/c', { input: fox }],
    ['cmac/c/8', 'cmac/c', { batch_input: [{ input: fox }, { input: fox, mac_length: 8 }] }],
    ['random/platform', 'random/16', {}],
    ['random/seal', 'random', { source: 'seal' }],
    ['random/seal', 'random/all', {}],
    ['random/seal', 'random/8', { source: 'all' }],
    ['random/seal/8', 'random/all/8', {}],
    ['random/platform/8', 'random', { bytes: '0x8' }],
  ] as const) {
    it(`is denied in ${target} with ${JSON.stringify(body)} as in ${denied}`, async () => {
      const { post, callerWith } = await setup();
      const may = await callerWith(granted);
      const mayNot = await callerWith(`${granted}path "mnt/${denied}" { capabilities = ["deny"] }`);
      expect(await refusal(post(target, body, mayNot))).to.equal('permission_denied');
      expect(await refusal(post(target, body, may))).to.not.equal('permission_denied');
    });
  }

  it('is not denied in a batch whose items all have another one', async () => {
    const { post, callerWith } = await setup();
    const caller = await callerWith(`${granted}path "mnt/cmac/c/16" { capabilities = ["deny"] }`);
    const batch = (...lengths: readonly number[]): Body => ({
      batch_input: lengths.map((mac_length) => ({ input: fox, mac_length })),
    });
    expect((await post('cmac/c', batch(8, 4), caller)).status).to.equal(200);
    expect(await refusal(post('cmac/c', batch(8, 0), caller))).to.equal('permission_denied');
  });

  for (const [denied, version] of [
    ['2', undefined],
    ['2', 'latest'],
    ['latest', undefined],
    ['latest', '2'],
    ['1', 'v1'],
  ] as const) {
    it(`is denied in an export of ${version ?? 'all versions'} as in one of ${denied}`, async () => {
      const { services, callerWith } = await setup();
      const principal = await callerWith(`${granted}path "mnt/export/hmac-key/k/${denied}" { capabilities = ["deny"] }`);
      const route = transitTransferRoutes.find(({ path }) => path === 'export/:key_type/:name/:version');
      const operation = route?.operations.GET;
      if (operation?.access !== 'token') throw new Error('export is no guarded operation');
      const { path, query } = parsePath('/v1/mnt/export/hmac-key/k');
      const params = { mount: 'mnt', key_type: 'hmac-key', name: 'k', ...(version !== undefined && { version }) };
      const node = { member: undefined } as never;
      const call = { verb: 'GET', path, written: path, query, params, body: {}, address: '' } as const;
      const exporting = async () => operation.run({ node, services, principal, token: '' }, call);
      expect(await refusal(exporting())).to.equal('permission_denied');
    });
  }

  for (const count of [1, 999, 1000, 1001])
    it(`is checked in the export of ${count} versions, which are in the response in their order`, async () => {
      const { callerWith } = await setup();
      const versions = Array.from({ length: count }, (_, at) => ({ version: at + 7 }));
      const key = { name: 'k', type: 'hmac', latestVersion: count + 6, versions };
      const exporting = async (denied: string) => {
        const principal = await callerWith(`${granted}path "mnt/export/hmac-key/k/${denied}" { capabilities = ["deny"] }`);
        const { json } = await exportedJson(principal, 'mnt/export/hmac-key/k', key, ({ version }) => `of ${version}`);
        return JSON.parse(joined(json));
      };
      const keys = Object.fromEntries(versions.map(({ version }) => [version, `of ${version}`]));
      expect(await exporting('6')).to.deep.equal({ name: 'k', type: 'hmac', keys });
      expect(await refusal(exporting(`v${count + 6}`))).to.equal('permission_denied');
      expect(await refusal(exporting('latest'))).to.equal('permission_denied');
    });

  it('is checked in the export of 20,000 versions while other work runs', async () => {
    const { callerWith } = await setup();
    const rules = Array.from({ length: 500 }, (_, n) => `path "mnt/export/+/k${n}/+" { capabilities = ["deny"] }`);
    const principal = await callerWith(granted + rules.join('\n'));
    const versions = Array.from({ length: 20_000 }, (_, at) => ({ version: at + 1 }));
    let turns = 0;
    const others = setInterval(() => {
      turns += 1;
    });
    await exportedJson(
      principal,
      'mnt/export/hmac-key/k',
      { name: 'k', type: 'hmac', latestVersion: 20_000, versions },
      () => '',
    );
    clearInterval(others);
    expect(turns).to.be.greaterThan(2);
  });

  for (const [denied, version] of [
    ['2', undefined],
    ['latest', '2'],
    ['1', 'v1'],
  ] as const) {
    it(`is denied in a key wrapped for another service, ${version ?? 'all versions'} as ${denied}`, async () => {
      const { services, callerWith } = await setup();
      const engine = services.mounts.engines.get('mnt');
      const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
      await engine?.transfers.importKey('there', { type: 'rsa-2048', publicKey: publicPem });
      const operation = transitTransferRoutes.find(({ path }) => path === 'byok-export/:destination/:source/:version')?.operations
        .GET;
      if (operation?.access !== 'token') throw new Error('byok-export is no guarded operation');
      const { path, query } = parsePath('/v1/mnt/byok-export/there/k');
      const params = { mount: 'mnt', destination: 'there', source: 'k', ...(version !== undefined && { version }) };
      const node = { member: undefined } as never;
      const wrapping = async (policy: string) =>
        operation.run(
          { node, services, principal: await callerWith(policy), token: '' },
          { verb: 'GET', path, written: path, query, params, body: {}, address: '' },
        );
      const deny = `path "mnt/byok-export/there/k/${denied}" { capabilities = ["deny"] }`;
      expect(await refusal(wrapping(granted + deny))).to.equal('permission_denied');
      expect(dataOf(await wrapping(granted))).to.have.all.keys('name', 'type', 'keys');
    });
  }

  it('is denied in a restore, whether the name comes from the backup or from the path', async () => {
    const { services, callerWith } = await setup();
    const engine = services.mounts.engines.get('mnt');
    await engine?.createKey('b', { exportable: true, allowPlaintextBackup: true });
    const backup = (await engine?.transfers.backupKey('b'))?.toString('base64') ?? '';
    await engine?.configureKey('b', { deletionAllowed: true });
    await engine?.deleteKey('b');
    const operation = transitTransferRoutes.find(({ path }) => path === 'restore')?.operations.POST;
    if (operation?.access !== 'token') throw new Error('restore is no guarded operation');
    const call = {
      verb: 'POST',
      ...parsePath('/v1/mnt/restore'),
      written: 'mnt/restore',
      params: { mount: 'mnt' },
      body: { backup },
      address: '',
    } as const;
    const node = { member: undefined } as never;
    const restoring = async (policy: string) =>
      operation.run({ node, services, principal: await callerWith(policy), token: '' }, call);
    expect(await refusal(restoring(`${granted}path "mnt/restore/b" { capabilities = ["deny"] }`))).to.equal('permission_denied');
    expect(await engine?.keyExists('b')).to.equal(false);
    await restoring(granted);
    expect(await engine?.keyExists('b')).to.equal(true);
  });
});

async function refusal(asked: Promise<unknown>): Promise<string | undefined> {
  try {
    await asked;
  } catch (error) {
    return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : String(error);
  }
  return undefined;
}
