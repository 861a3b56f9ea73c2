// @live
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { processMs, Workbench } from './live-server.ts';
import { type Circumstances, expectCode, type Ran, run } from './transitd-command.ts';

/** Makes files `NAME.crt` and `NAME.key`, signed by `authority`, or by itself without one. */
function certificate(folder: string, name: string, { authority, names }: { authority?: string; names?: string } = {}): void {
  const signer = authority === undefined ? [] : ['-CA', `${authority}.crt`, '-CAkey', `${authority}.key`];
  const extension = names === undefined ? [] : ['-addext', `subjectAltName=${names}`];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', `${name}.key`];
  execFileSync(
    'openssl',
    ['req', '-x509', ...key, '-out', `${name}.crt`, '-days', '2', '-subj', `/CN=${name}`, ...extension, ...signer],
    { cwd: folder, stdio: 'ignore' },
  );
}

describe('a listener that asks for client certificates', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let folder = '';
  let file: (name: string) => string;
  let trusting: Record<string, string>;
  let withCertificate: Record<string, string>;
  before(async () => {
    folder = bench.folder();
    file = (name) => join(folder, name);
    certificate(folder, 'authority');
    certificate(folder, 'node', { authority: 'authority', names: 'IP:127.0.0.1,DNS:n1.example' });
    certificate(folder, 'client', { authority: 'authority' });
    certificate(folder, 'stranger');
    writeFileSync(
      file('transitd.yaml'),
      [
        'node_id: n1',
        `data_dir: ${file('data')}`,
        'listeners:',
        '  - address: "127.0.0.1:0"',
        `    tls: { cert_file: ${file('node.crt')}, key_file: ${file('node.key')}, client_ca_file: ${file('authority.crt')} }`,
      ].join('\n'),
    );
    const server = await bench.start({ dataDir: '', command: ['server', '--config', file('transitd.yaml')] });
    trusting = { HOME: folder, TRANSITD_ADDR: server.url, TRANSITD_CACERT: file('authority.crt') };
    withCertificate = { ...trusting, TRANSITD_CLIENT_CERT: file('client.crt'), TRANSITD_CLIENT_KEY: file('client.key') };
    const init = await transitd(['operator', 'init', '-key-shares=1', '-key-threshold=1', '-format=json']);
    const { unseal_keys_b64, root_token } = init.json<{ unseal_keys_b64: string[]; root_token: string }>();
    withCertificate['TRANSITD_TOKEN'] = root_token;
    await transitd(['operator', 'unseal', '-'], { input: unseal_keys_b64[0] ?? '' });
  });
  after(() => bench.clean());

  const transitd = async (args: readonly string[], { env = {}, input = '' }: Circumstances = {}): Promise<Ran> =>
    expectCode(await run(args, { env: { ...withCertificate, ...env }, input }), 0, args.join(' '));

  it('serves every kind of request of the command line with one', async () => {
    await transitd(['healthcheck']);
    await transitd(['doctor']);
    await transitd(['status']);
    await transitd(['write', '-f', 'transit/keys/orders']);
    await transitd(['delete', 'sys/policies/acl/nobody']);
    const { stdout: ciphertext } = await transitd(['key', 'encrypt', 'orders', '-'], { input: 'x'.repeat(1_000_000) });
    expect((await transitd(['key', 'decrypt', 'orders'], { input: ciphertext })).stdout).to.have.length(1_000_000);
    await transitd(['operator', 'raft', 'snapshot', 'save', file('state.snap')]);
    await transitd(['operator', 'raft', 'snapshot', 'restore', file('state.snap')]);
    expectCode(await run(['read', 'transit/keys/nobody'], { env: withCertificate }), 2, 'a refusal');
  });

  it('is reached with the options and the variables of Vault and OpenBao', async () => {
    const { TRANSITD_ADDR = '', HOME = '', TRANSITD_TOKEN = '' } = withCertificate;
    const [ca, cert, key] = [file('authority.crt'), file('client.crt'), file('client.key')];
    const options = [`-address=${TRANSITD_ADDR}`, `-ca-cert=${ca}`, `-client-cert=${cert}`, `-client-key=${key}`];
    expectCode(await run(['status', ...options], { env: { HOME } }), 0);
    expectCode(await run(['healthcheck', ...options], { env: { HOME } }), 0);
    const variables = {
      ADDR: TRANSITD_ADDR,
      CACERT: ca,
      CLIENT_CERT: cert,
      CLIENT_KEY: key,
      TOKEN: TRANSITD_TOKEN,
      FORMAT: 'json',
    };
    for (const prefix of ['VAULT', 'BAO']) {
      const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [`${prefix}_${name}`, value]));
      const ran = expectCode(await run(['key', 'list'], { env: { HOME, ...env } }), 0, prefix);
      expect(ran.json()).to.deep.equal(['orders']);
    }
  });

  it('is reached as the source and as the target of a move', async () => {
    const { TRANSITD_ADDR = '', TRANSITD_TOKEN = '' } = withCertificate;
    const certificates = ['--from-client-cert', file('client.crt'), '--from-client-key', file('client.key')];
    const env = { ...withCertificate, TRANSITD_SOURCE_TOKEN: TRANSITD_TOKEN };
    const move = ['migrate', '--dry-run', '--from', TRANSITD_ADDR];
    expect(expectCode(await run([...move, ...certificates], { env }), 1).stderr).to.include('are the same cluster');
    expect(expectCode(await run(move, { env }), 1).stderr).to.include('asks for a certificate of the client');
  });

  it('is verified by --tls-server-name instead of the host in the address', async () => {
    await transitd(['status', '-tls-server-name=n1.example']);
    const ran = await run(['status'], { env: { ...withCertificate, TRANSITD_TLS_SERVER_NAME: 'n2.example' } });
    expect(expectCode(ran, 1).stderr).to.include('does not name this host');
  });

  it('is reached without verification only on request, and with a warning', async () => {
    const { TRANSITD_CACERT: _, ...env } = withCertificate;
    expect(expectCode(await run(['status'], { env }), 1).stderr).to.include('not signed by a trusted authority');
    for (const [args, more] of [
      [['status', '-tls-skip-verify'], {}],
      [['healthcheck', '-tls-skip-verify'], {}],
      [['status'], { VAULT_SKIP_VERIFY: '1' }],
      [['status', '-tls-skip-verify=true'], { TRANSITD_SKIP_VERIFY: 'false' }],
    ] as const)
      expect(expectCode(await run(args, { env: { ...env, ...more } }), 0, args.join(' ')).stderr).to.match(
        /^warning: the server's certificate is not verified/,
      );
    expect((await transitd(['status'], { env: { VAULT_SKIP_VERIFY: 'false' } })).stderr).to.equal('');
  });

  for (const { what, env, says } of [
    {
      what: 'no certificate',
      env: {},
      says: /if the server asks for a certificate of the client, use --client-cert and --client-key/,
    },
    {
      what: 'a certificate of another authority',
      env: { TRANSITD_CLIENT_CERT: 'stranger.crt', TRANSITD_CLIENT_KEY: 'stranger.key' },
      says: /asks for a certificate of the client, .* with one of its authority/,
    },
    { what: 'a certificate without its key', env: { TRANSITD_CLIENT_CERT: 'client.crt' }, says: /needs its key: use both/ },
    {
      what: 'a certificate with the key of another one',
      env: { TRANSITD_CLIENT_CERT: 'client.crt', TRANSITD_CLIENT_KEY: 'stranger.key' },
      says: /certificate \S+client\.crt cannot be used with the key \S+stranger\.key: .*mismatch/,
    },
    {
      what: 'a key that does not exist',
      env: { TRANSITD_CLIENT_CERT: 'client.crt', TRANSITD_CLIENT_KEY: 'nothing.key' },
      says: /nothing\.key cannot be read: ENOENT/,
    },
  ] as { what: string; env: Record<string, string>; says: RegExp }[])
    it(`fails with one sentence with ${what}`, async () => {
      const files = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, file(value)]));
      const ran = expectCode(await run(['status'], { env: { ...trusting, ...files } }), 1);
      expect(ran.stderr)
        .to.match(says)
        .and.match(/^transitd: [^\n]*\n$/);
    });
});
