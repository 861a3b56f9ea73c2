// @live
// Commands that bring keys, certificates and texts in and out, against a live node.
import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { safety } from '../safety.ts';
import { type LiveServer, processMs, Workbench } from './live-server.ts';
import { type Circumstances, expectCode, type Ran, run } from './transitd-command.ts';

describe('the commands for imports, certificates and tools', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let folder = '';
  before(async () => {
    folder = bench.folder();
    server = await bench.start({ dataDir: bench.folder() });
  });
  after(() => bench.clean());

  const transitd = (args: readonly string[], { env = {}, input = '' }: Circumstances = {}): Promise<Ran> =>
    run(args, { env: { HOME: folder, TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken, ...env }, input });
  const done = async (args: readonly string[], circumstances?: Circumstances): Promise<Ran> =>
    expectCode(await transitd(args, circumstances), 0, args.join(' '));
  const file = (name: string, content: string | Uint8Array): string => {
    writeFileSync(join(folder, name), content, { mode: 0o600 });
    return `@${join(folder, name)}`;
  };
  const openssl = (...args: readonly string[]): string =>
    execFileSync('openssl', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });

  it('imports a key pair, whose signatures then verify, and a further version', async () => {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    await done([
      'key',
      'import',
      'signer',
      file('signer.pem', pair.privateKey.export({ type: 'sec1', format: 'pem' })),
      '--allow-rotation',
    ]);
    const signature = `svc:v1:${sign('sha256', Buffer.from('text'), pair.privateKey).toString('base64')}`;
    await done(['key', 'verify', 'signer', 'text', '--signature', signature]);
    const next = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'der' });
    await done(['key', 'import', 'signer', file('next.der', next), '--encoding', 'der', '--new-version']);
    expect((await done(['key', 'read', 'signer', '--field', 'latest_version'])).stdout).to.equal('2');
    const refused = expectCode(await transitd(['key', 'import', 'other', 'MIIEvQ-plain']), 1);
    expect(refused.stderr)
      .to.match(/must not be on the command line/)
      .and.not.include('MIIEvQ');
  });

  it('imports an encrypted PEM, PKCS#12 by way of openssl, a public key, and the bytes of a symmetric key', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const encrypted = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'open sesame' });
    const passphrase = file('passphrase', 'open sesame\n');
    await done(['key', 'import', 'sealed', file('sealed.pem', encrypted), '--passphrase', passphrase]);
    expectCode(
      await transitd(['key', 'import', 'sealed2', `@${join(folder, 'sealed.pem')}`]),
      1,
      'no terminal to ask for the passphrase',
    );

    file('plain.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }));
    openssl('req', '-x509', '-key', 'plain.pem', '-subj', '/CN=a', '-out', 'self.pem');
    openssl('pkcs12', '-export', '-inkey', 'plain.pem', '-in', 'self.pem', '-out', 'a.p12', '-passout', 'file:passphrase');
    const pem = openssl('pkcs12', '-in', 'a.p12', '-nocerts', '-nodes', '-passin', 'file:passphrase');
    await done(['key', 'import', 'boxed', '-'], { input: pem });
    const made = (await done(['key', 'encrypt', 'boxed', 'x'])).stdout;
    expect((await done(['key', 'decrypt', 'sealed'], { input: made })).stdout, 'the same key').to.equal('x');

    await done(['key', 'import', 'public', file('public.pem', publicKey.export({ type: 'spki', format: 'pem' }))]);
    expectCode(await transitd(['key', 'sign', 'public', 'x']), 2);
    const bytes = Buffer.alloc(32, 3);
    await done(['key', 'import', 'orders', file('orders.key', bytes), '--exportable']);
    const exported = await done(['key', 'export', 'encryption-key', 'orders', '1', '--format', 'json']);
    expect(exported.json()).to.have.nested.property('data.keys.1', bytes.toString('base64'));

    await done(['key', 'import', 'elsewhere', file('wrap.pem', publicKey.export({ type: 'spki', format: 'pem' }))]);
    const wrapped = await done(['key', 'byok-export', 'elsewhere', 'orders', '1', '--format=json']);
    expect(wrapped.json<{ data: { keys: Record<string, string> } }>().data.keys['1']).to.have.length.above(300);
  });

  it('makes a certificate request and stores the chain', async () => {
    await done(['key', 'create', 'web', '--type', 'ecdsa-p256']);
    const csr = await done(['key', 'csr', 'web']);
    file('web.csr', csr.stdout);
    expect(openssl('req', '-in', 'web.csr', '-noout', '-verify', '-subject')).to.be.a('string');
    openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'ca.key', '-subj', '/CN=ca', '-out', 'ca.pem');
    openssl(
      'x509',
      '-req',
      '-in',
      'web.csr',
      '-CA',
      'ca.pem',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-out',
      'web.pem',
      '-days',
      '2',
    );
    const chain = file('chain.pem', readFileSync(join(folder, 'web.pem'), 'utf8') + readFileSync(join(folder, 'ca.pem'), 'utf8'));
    await done(['key', 'set-certificate', 'web', chain]);
    expect((await done(['key', 'export', 'certificate-chain', 'web', 'latest'])).stdout).to.include('BEGIN CERTIFICATE');
  });

  it('prints random bytes and hashes', async () => {
    expect((await done(['random', '16', '--encoding', 'hex'])).stdout).to.match(/^[0-9a-f]{32}\n$/);
    expect((await done(['random'])).stdout).to.not.equal((await done(['random'])).stdout);
    expectCode(await transitd(['random', '0']), 1);
    const sum = createHash('sha512').update('text').digest('hex');
    expect((await done(['hash', '--algorithm=sha2-512', '--encoding=hex'], { input: 'text' })).stdout).to.equal(`${sum}\n`);
  });

  it('formats a policy file in place', async () => {
    const path = file('app.hcl', 'path "a" {capabilities=["read"]}').slice(1);
    expectCode(await transitd(['policy', 'fmt', '--check', path]), 2);
    await done(['policy', 'fmt', path]);
    expect(readFileSync(path, 'utf8')).to.equal('path "a" {\n  capabilities = ["read"]\n}\n');
    expect(statSync(path).mode & 0o777).to.equal(0o600);
    await done(['policy', 'fmt', '--check', path]);
    expect((await done(['policy', 'fmt', '-'], { input: 'path "a" {}' })).stdout).to.equal('path "a" {}\n');
    expectCode(await transitd(['policy', 'fmt', '-'], { input: 'path' }), 1);
  });

  it('describes a path', async () => {
    const { stdout } = await done(['path-help', 'transit/encrypt/orders']);
    expect(stdout)
      .to.match(/^\/transit\/encrypt\/\{name\}$/m)
      .and.match(/^POST {2}Encrypt/m)
      .and.match(/^ +plaintext \(string\) +\S/m);
    expect((await done(['path-help', '/sys/mounts'])).stdout).to.match(/^GET /m);
    expectCode(await transitd(['path-help', 'nowhere/at/all']), 1);
  });

  it('collects a bundle without secrets, also with a token that may read little', async () => {
    await done(['key', 'create', 'a-secret-key-name']);
    const path = join(folder, 'report.json');
    await done(['debug', path]);
    expect(statSync(path).mode & 0o777).to.equal(0o600);
    const text = readFileSync(path, 'utf8');
    const { sections } = JSON.parse(text) as { sections: Record<string, object> };
    // A development node is not in a cluster.
    const ofClusters = /^(?:autopilot|authority)/;
    for (const [name, section] of Object.entries(sections))
      expect(section, JSON.stringify(section)).to.have.property(ofClusters.test(name) ? 'error' : 'answer');
    expect(text).to.include('svc_core_unsealed').and.not.include(server.rootToken).and.not.include('a-secret-key-name');
    expect(server.secrets.findings('the bundle', text), safety).to.deep.equal([]);
    expectCode(await transitd(['debug', path]), 1, 'it exists');
    const limited = (await done(['token', 'create', '-policy=default', '-field=token'])).stdout;
    const partial = join(folder, 'partial.json');
    await done(['debug', partial], { env: { TRANSITD_TOKEN: limited } });
    expect(readFileSync(partial, 'utf8')).to.include('refused with 403');
  });

  it('says what to do without a token, and with https for a server without TLS', async () => {
    const env = { TRANSITD_TOKEN: '' };
    expect(expectCode(await transitd(['key', 'list'], { env }), 2).stderr).to.match(
      /refused \S+ \S+ with 403: .*; there is no token: set TRANSITD_TOKEN/,
    );
    const https = { TRANSITD_ADDR: server.url.replace('http:', 'https:') };
    expect(expectCode(await transitd(['key', 'list'], { env: https }), 1).stderr).to.match(/use http:\/\/ instead of https:\/\//);
  });
});
