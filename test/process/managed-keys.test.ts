// Keys in a PKCS#11 token on a live node, over HTTP, with SoftHSM: registration, use, removal.
import { execFileSync } from 'node:child_process';
import { constants, createPublicKey, randomBytes, verify } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { needsToken, softhsmLibrary, TokenFolder } from '../../packages/pkcs11/test/softhsm.ts';
import { until } from '../cluster/harness/until.ts';
import { type Answer, base64, type LiveServer, processMs, Workbench } from './live-server.ts';

const pin = 'pin-that-nobody-sees';
const message = Buffer.from('the quick brown fox');
const input = base64(message.toString());

describe('managed keys on a live node', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let tokens: TokenFolder;
  let folder: string;
  let configFile: string;
  let server: LiveServer;
  let rootToken = '';

  const start = async (): Promise<LiveServer> =>
    bench.launch({ dataDir: '', command: ['server', '--config', configFile] }).ready();
  const call = (method: string, path: string, body?: unknown, token = rootToken): Promise<Answer> =>
    server.call(method, path, body, token);
  const serves = async (): Promise<void> => {
    while ((await call('GET', 'sys/health', undefined)).status !== 200) {
      // the static seal unseals the node
    }
  };
  const register = (name: string, more: object = {}): Promise<Answer> =>
    call('POST', `sys/managed-keys/pkcs11/${name}`, {
      library: 'softhsm',
      token_label: 'token',
      pin,
      key_label: name,
      mechanism: 'CKM_ECDSA',
      allow_generate_key: true,
      any_mount: true,
      ...more,
    });
  const errorOf = (answer: Answer): unknown => [answer.status, answer.at('errors.0')];

  before(async function () {
    needsToken(this);
    tokens = new TokenFolder();
    tokens.addToken({ label: 'token', pin });
    folder = bench.folder();
    const keyFile = join(bench.folder(), 'seal.key');
    writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
    configFile = join(bench.folder(), 'transitd.yaml');
    writeFileSync(
      configFile,
      JSON.stringify({
        node_id: 'n1',
        data_dir: join(folder, 'data'),
        listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
        seal: { type: 'static', key_id: 'k', key_file: keyFile },
        pkcs11_libraries: [
          { name: 'softhsm', path: softhsmLibrary },
          { name: 'missing', path: '/nowhere/lib.so' },
        ],
      }),
    );
    server = await start();
    const answer = await server.call('POST', 'sys/init', { recovery_shares: 1, recovery_threshold: 1 }, null);
    rootToken = answer.string('root_token');
    await serves();
  });
  after(async () => {
    await bench.clean();
    tokens?.remove();
  });

  it('are registered, shown without their PIN, listed and deleted', async () => {
    expect((await call('LIST', 'sys/managed-keys/pkcs11')).status).to.equal(404);
    expect((await register('shown', { key_id: '0xAB', curve: 'P384', usages: 'sign,verify' })).status).to.equal(204);
    const answer = await call('GET', 'sys/managed-keys/pkcs11/shown');
    const { id, ...data } = answer.at('data') as Record<string, unknown>;
    expect(id).to.match(/^[0-9a-f-]{36}$/);
    expect(data).to.deep.equal({
      name: 'shown',
      type: 'pkcs11',
      library: 'softhsm',
      token_label: 'token',
      key_label: 'shown',
      key_id: 'ab',
      mechanism: 'CKM_ECDSA',
      curve: 'P384',
      allow_generate_key: true,
      any_mount: true,
      usages: ['sign', 'verify'],
    });
    expect(answer.text).not.to.include(pin);
    expect((await call('GET', 'sys/managed-keys/pkcs11?list=true')).at('data.keys')).to.deep.equal(['shown']);
    expect((await call('DELETE', 'sys/managed-keys/pkcs11/shown')).status).to.equal(204);
    expect((await call('GET', 'sys/managed-keys/pkcs11/shown')).status).to.equal(404);
  });

  for (const { what, mechanism, more, request, check } of [
    {
      what: 'ECDSA',
      mechanism: 'CKM_ECDSA',
      more: { curve: 'P256' },
      request: {},
      check: (key: ReturnType<typeof createPublicKey>, signature: Buffer) => verify('sha256', message, key, signature),
    },
    {
      what: 'RSA-PSS',
      mechanism: '0x000D',
      more: { key_bits: 2048 },
      request: {},
      check: (key: ReturnType<typeof createPublicKey>, signature: Buffer) =>
        verify('sha256', message, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }, signature),
    },
    {
      what: 'RSA PKCS#1 v1.5',
      mechanism: 'CKM_RSA_PKCS',
      more: { key_bits: 3072 },
      request: { hash_algorithm: 'sha2-512' },
      check: (key: ReturnType<typeof createPublicKey>, signature: Buffer) => verify('sha512', message, key, signature),
    },
  ]) {
    it(`sign and verify with ${what}`, async () => {
      const name = `sign-${mechanism}`;
      expect((await register(name, { mechanism, ...more })).status).to.equal(204);
      expect((await call('POST', `sys/managed-keys/pkcs11/${name}/test/sign`)).status).to.equal(204);
      const created = await call('POST', `transit/keys/${name}`, { type: 'managed_key', managed_key_name: name });
      expect(created.status, created.text).to.equal(200);
      const publicKey = createPublicKey(created.string('data.keys.1.public_key'));
      const signed = await call('POST', `transit/sign/${name}`, { input, ...request });
      const signature = signed.string('data.signature');
      expect(check(publicKey, Buffer.from(signature.split(':')[2] ?? '', 'base64'))).to.equal(true);
      expect((await call('POST', `transit/verify/${name}`, { input, signature, ...request })).at('data.valid')).to.equal(true);
      const other = await call('POST', `transit/verify/${name}`, { input: base64('jumps'), signature, ...request });
      expect(other.at('data.valid')).to.equal(false);
    });
  }

  it("encrypt and decrypt, with a random nonce or the caller's", async () => {
    expect((await register('aes', { mechanism: 'CKM_AES_GCM', key_bits: 256 })).status).to.equal(204);
    expect((await call('POST', 'transit/keys/aes', { type: 'managed_key', managed_key_name: 'aes' })).status).to.equal(200);
    for (const more of [{}, { nonce: base64('twelve bytes') }, { associated_data: base64('bound') }]) {
      const encrypted = await call('POST', 'transit/encrypt/aes', { plaintext: input, ...more });
      const ciphertext = encrypted.string('data.ciphertext');
      expect((await call('POST', 'transit/decrypt/aes', { ciphertext, ...more })).at('data.plaintext')).to.equal(input);
    }
    const empty = (await call('POST', 'transit/encrypt/aes', { plaintext: '' })).string('data.ciphertext');
    expect((await call('POST', 'transit/decrypt/aes', { ciphertext: empty })).at('data.plaintext')).to.equal('');
    const batch = Array.from({ length: 40 }, (_, index) => ({ plaintext: base64(`item ${index}`) }));
    const answer = await call('POST', 'transit/encrypt/aes', { batch_input: batch });
    expect((answer.at('data.batch_results') as object[]).filter((item) => 'ciphertext' in item)).to.have.lengthOf(40);
    const altered = `${empty.slice(0, -4)}AAAA`;
    expect((await call('POST', 'transit/decrypt/aes', { ciphertext: altered })).status).to.equal(400);
    expect(errorOf(await call('POST', 'sys/managed-keys/pkcs11/aes/test/sign'))).to.deep.equal([
      400,
      'managed key aes: it may not be used to sign',
    ]);
  });

  it('rotate to the named key', async () => {
    for (const name of ['first', 'second']) await register(name);
    await call('POST', 'transit/keys/rotated', { type: 'managed_key', managed_key_name: 'first' });
    const signature = (await call('POST', 'transit/sign/rotated', { input })).string('data.signature');
    expect(errorOf(await call('POST', 'transit/keys/rotated/rotate'))).to.deep.equal([
      400,
      'one of managed_key_name or managed_key_id is required',
    ]);
    const id = (await call('GET', 'sys/managed-keys/pkcs11/second')).string('data.id');
    const rotated = await call('POST', 'transit/keys/rotated/rotate', { managed_key_id: id });
    expect(rotated.at('data.latest_version')).to.equal(2);
    expect(rotated.at('data.keys.2.name')).to.equal(id);
    expect((await call('POST', 'transit/verify/rotated', { input, signature })).at('data.valid')).to.equal(true);
  });

  it('report what is wrong with them', async () => {
    await register('pin', { pin: 'another-pin' });
    await register('absent', { allow_generate_key: false });
    await register('elsewhere', { token_label: 'nowhere' });
    await register('unloadable', { library: 'missing' });
    for (const [name, status, text] of [
      ['pin', 400, 'managed key pin: the token refused the PIN; it is not tried again'],
      ['absent', 400, 'managed key absent: the key is not in the token'],
      ['elsewhere', 503, 'managed key elsewhere: the library shows no such token'],
      ['unloadable', 400, 'managed key unloadable: the PKCS#11 library cannot be loaded'],
      ['unknown', 400, 'managed key unknown not found'],
    ] as const) {
      const answer = await call('POST', `transit/keys/of-${name}`, { type: 'managed_key', managed_key_name: name });
      expect(errorOf(answer), name).to.deep.equal([status, text]);
      expect((await call('GET', `transit/keys/of-${name}`)).status).to.equal(404);
    }
    expect(errorOf(await register('evil', { library: softhsmLibrary }))).to.deep.equal([
      400,
      `no PKCS#11 library is configured under the name ${softhsmLibrary}`,
    ]);
  });

  it('are unavailable while their token is away, whatever the library says about it', async () => {
    await register('pulled');
    await call('POST', 'transit/keys/pulled', { type: 'managed_key', managed_key_name: 'pulled' });
    const [present, away] = ['tokens', 'away'].map((name) => join(tokens.path, name)) as [string, string];
    renameSync(present, away);
    try {
      // After a few failures the library is initialized again, which fails too.
      for (let time = 0; time < 6; time++) {
        for (const body of [{ input }, { batch_input: [{ input }] }]) {
          const answer = await call('POST', 'transit/sign/pulled', body);
          expect(answer.status, answer.text).to.equal(503);
          expect(answer.text).to.include('managed key pulled: ').and.not.include('libsofthsm');
        }
      }
    } finally {
      renameSync(away, present);
    }
    const answer = await until('the token is used again', async () => {
      const one = await call('POST', 'transit/sign/pulled', { input });
      return one.status !== 503 && one;
    });
    expect(answer.status).to.equal(200);
  });

  it('are used only by mounts that allow them', async () => {
    await register('private', { any_mount: false });
    const answer = await call('POST', 'transit/keys/p', { type: 'managed_key', managed_key_name: 'private' });
    expect(errorOf(answer)).to.deep.equal([400, 'managed key private not found']);
    await register('lent');
    await call('POST', 'transit/keys/lent', { type: 'managed_key', managed_key_name: 'lent' });
    expect((await call('POST', 'transit/sign/lent', { input })).status).to.equal(200);
    await register('lent', { any_mount: false });
    expect((await call('POST', 'transit/sign/lent', { input })).status, 'taken back').to.equal(400);
    await register('lent');
    expect((await call('POST', 'transit/sign/lent', { input })).status, 'lent again').to.equal(200);
    await call('DELETE', 'sys/managed-keys/pkcs11/lent');
    expect((await call('POST', 'transit/sign/lent', { input })).status, 'deleted').to.equal(400);
  });

  it('need their own rights', async () => {
    await call('POST', 'sys/policies/acl/reader', { policy: 'path "sys/managed-keys/pkcs11/*" { capabilities = ["read"] }' });
    const token = (await call('POST', 'auth/token/create', { policies: ['reader'] })).string('auth.client_token');
    await register('guarded');
    expect((await call('GET', 'sys/managed-keys/pkcs11/guarded', undefined, token)).status).to.equal(200);
    for (const [method, path] of [
      ['POST', 'sys/managed-keys/pkcs11/guarded'],
      ['DELETE', 'sys/managed-keys/pkcs11/guarded'],
      ['POST', 'sys/managed-keys/pkcs11/guarded/test/sign'],
      ['LIST', 'sys/managed-keys/pkcs11'],
    ] as const) {
      expect((await call(method, path, method === 'POST' ? {} : undefined, token)).status, `${method} ${path}`).to.equal(403);
    }
  });

  it('survive a restart, and their PIN is nowhere in clear', async () => {
    await register('kept');
    await call('POST', 'transit/keys/kept', { type: 'managed_key', managed_key_name: 'kept' });
    const signature = (await call('POST', 'transit/sign/kept', { input })).string('data.signature');
    const log = server.stderr;
    expect(await server.stop()).to.deep.equal({ code: 0, signal: null });
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.length).to.be.greaterThan(3);
    for (const { parentPath, name } of files) {
      expect(readFileSync(join(parentPath, name)).includes(pin), name).to.equal(false);
    }
    expect(log).not.to.include(pin);
    server = await start();
    await serves();
    expect((await call('POST', 'transit/verify/kept', { input, signature })).at('data.valid')).to.equal(true);
    expect((await call('POST', 'transit/sign/kept', { input })).status).to.equal(200);
  });

  it('do not keep the node from its end while their token hangs', async () => {
    await register('hung');
    await call('POST', 'transit/keys/hung', { type: 'managed_key', managed_key_name: 'hung' });
    expect(await server.stop()).to.deep.equal({ code: 0, signal: null });
    const stored = join(tokens.path, 'tokens');
    const file = join(stored, readdirSync(stored)[0] ?? '', 'token.object');
    rmSync(file);
    execFileSync('mkfifo', [file]); // SoftHSM waits for a writer
    server = await start();
    await serves();
    const late = await call('POST', 'transit/sign/hung', { input });
    expect(late.text).to.contain('the token did not answer in time');
    expect(await server.stop()).to.deep.equal({ code: 0, signal: null });
  });
});
