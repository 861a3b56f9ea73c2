// A node as an operator runs it: a configuration file, a Shamir seal, signals, and errors.
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../packages/process/test/until.ts';
import { base64, type LiveServer, processMs, root, Workbench } from './live-server.ts';

describe('operating a node', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  /** A folder with a configuration file; `more` is YAML at the top level. */
  const configured = (more = ''): { folder: string; file: string } => {
    const folder = bench.folder();
    const file = join(folder, 'transitd.yaml');
    writeFileSync(
      file,
      `node_id: n1\ndata_dir: ${folder}/data\nworkers: 0\nlisteners:\n  - { address: "127.0.0.1:0", tls_disable: true }\n${more}`,
    );
    return { folder, file };
  };
  const launch = (file: string, env: Readonly<Record<string, string>> = {}): LiveServer =>
    bench.launch({ dataDir: '', command: ['server', '--config', file], env });
  const health = async (server: LiveServer, query = ''): Promise<number> =>
    (await server.call('GET', `sys/health${query}`, undefined, null)).status;

  it('goes from uninitialized to sealed to active, checking each share at once', async function () {
    this.timeout(processMs);
    const { file } = configured();
    const server = await launch(file).ready();
    expect(await health(server)).to.equal(501);
    expect(await health(server, '?uninitcode=299')).to.equal(299);
    expect((await server.call('POST', 'transit/keys/a', {}, 'any')).status).to.equal(503);

    for (const [body, says] of [
      [{}, /shares must be at least one/],
      [{ secret_shares: 2, secret_threshold: 3 }, /threshold cannot be larger than shares/],
      [{ secret_shares: 3, secret_threshold: 1 }, /greater than one for multiple shares/],
      [{ secret_shares: 3, secret_threshold: 2, recovery_shares: 1 }, /not applicable to seal type shamir/],
      [{ secret_shares: 1, secret_threshold: 1, pgp_keys: ['x'] }, /pgp_keys is not supported/],
    ] as const) {
      const refused = await server.call('PUT', 'sys/init', body, null);
      expect([refused.status, refused.text]).to.satisfy(
        ([status, text]: [number, string]) => status === 400 && says.test(text),
        refused.text,
      );
    }
    expect((await server.call('GET', 'sys/init', undefined, null)).at('initialized')).to.equal(false);

    const both = await Promise.all(
      [1, 2].map(() => server.call('PUT', 'sys/init', { secret_shares: 3, secret_threshold: 2 }, null)),
    );
    expect(both.map(({ status }) => status).toSorted()[0], 'one of two at once succeeds').to.equal(200);
    const made = both.filter(({ status }) => status === 200);
    expect(made).to.have.length(1);
    const [init] = made;
    if (init === undefined) throw new Error('no response to sys/init');
    const keys = init.at('keys') as string[];
    const root = init.string('root_token');
    expect(await health(server)).to.equal(503);
    expect((await server.call('GET', 'transit/keys/a', undefined, root)).text).to.include('sealed');

    const unseal = (target: LiveServer, key: string | undefined) =>
      target.call('PUT', 'sys/unseal', { key, reset: false, migrate: false }, null);
    const first = await unseal(server, keys[0]);
    expect([first.at('sealed'), first.at('progress'), first.at('t'), first.at('n')]).to.deep.equal([true, 1, 2, 3]);
    expect((await unseal(server, keys[0])).at('progress'), 'the same share twice').to.equal(1);
    const wrong = `${keys[1]?.startsWith('00') ? '11' : '00'}${keys[1]?.slice(2)}`;
    expect((await unseal(server, wrong)).status, 'a wrong share').to.equal(400);
    expect((await server.call('GET', 'sys/seal-status', undefined, null)).at('progress')).to.equal(1);
    const last = await unseal(server, Buffer.from(keys[2] ?? '', 'hex').toString('base64'));
    expect(last.at('sealed')).to.equal(false);
    expect(await health(server)).to.equal(200);

    expect((await server.call('POST', 'transit/keys/a', {}, root)).status).to.equal(200);
    const plaintext = base64('through a restart and a rotation');
    const ciphertext = (await server.call('POST', 'transit/encrypt/a', { plaintext }, root)).string('data.ciphertext');
    expect((await server.call('PUT', 'sys/rotate', undefined, root)).status).to.equal(204);
    expect((await server.call('GET', 'sys/key-status', undefined, root)).at('data.term')).to.equal(2);
    expect((await server.call('PUT', 'sys/seal', undefined, root)).status).to.equal(204);
    expect(await health(server)).to.equal(503);
    expect((await server.stop()).code).to.equal(0);

    const again = await launch(file).ready();
    expect(await health(again)).to.equal(503);
    await unseal(again, keys[1]);
    expect((await unseal(again, keys[0])).at('sealed')).to.equal(false);
    expect((await again.call('POST', 'transit/decrypt/a', { ciphertext }, root)).at('data.plaintext')).to.equal(plaintext);

    // New shares; the old ones no longer unseal it.
    expect((await again.call('PUT', 'sys/rotate/root/init', { secret_shares: 1, secret_threshold: 1 }, root)).status).to.equal(
      200,
    );
    const nonce = (await again.call('GET', 'sys/rotate/root/init', undefined, root)).string('data.nonce');
    await again.call('PUT', 'sys/rotate/root/update', { key: keys[0], nonce }, root);
    const rekeyed = await again.call('PUT', 'sys/rotate/root/update', { key: keys[1], nonce }, root);
    const [newShare] = rekeyed.at('data.keys') as string[];
    await again.call('PUT', 'sys/seal', undefined, root);
    expect((await unseal(again, keys[0])).status).to.equal(400);
    expect((await unseal(again, newShare)).at('sealed')).to.equal(false);
    expect((await again.call('POST', 'transit/decrypt/a', { ciphertext }, root)).at('data.plaintext')).to.equal(plaintext);
  });

  it('unseals itself with a static key, accepts a change of that key, and stays sealed without the right one', async function () {
    this.timeout(processMs);
    const folder = bench.folder();
    const [oldKey, newKey] = [join(folder, 'old'), join(folder, 'new')];
    writeFileSync(oldKey, Buffer.alloc(32, 1), { mode: 0o600 });
    writeFileSync(newKey, Buffer.alloc(32, 2).toString('hex'), { mode: 0o600 });
    const { file } = configured(`seal: { type: static, key_id: old, key_file: ${oldKey} }\n`);
    const first = await launch(file).ready();
    const init = await first.call('PUT', 'sys/init', { recovery_shares: 1, recovery_threshold: 1 }, null);
    expect(init.at('keys')).to.deep.equal([]);
    expect(init.at('recovery_keys')).to.have.length(1);
    expect(await health(first)).to.equal(200);
    await first.stop();

    const seal = (text: string) => ({ TRANSITD_SEAL_KEY_FILE: newKey, TRANSITD_SEAL_KEY_ID: text });
    for (const [env, says] of [
      [seal('other'), /no seal key with the id \\"old\\"/],
      [seal('old'), /the seal key \\"old\\" does not open/],
      [{ TRANSITD_SEAL_PREVIOUS_KEY_ID: 'old', TRANSITD_SEAL_PREVIOUS_KEY_FILE: newKey }, /needs an id of its own/],
    ] as const) {
      const wrong = launch(file, env);
      expect((await wrong.exited).code, wrong.stderr).to.equal(1);
      expect(wrong.stderr).to.match(says);
      expect(wrong.stderr).not.to.match(/\n\s+at /);
    }

    const moved = await launch(file, {
      ...seal('new'),
      TRANSITD_SEAL_PREVIOUS_KEY_ID: 'old',
      TRANSITD_SEAL_PREVIOUS_KEY_FILE: oldKey,
    }).ready();
    expect(await health(moved)).to.equal(200);
    await moved.stop();
    expect(await health(await launch(file, seal('new')).ready())).to.equal(200);
  });

  for (const { what, config, args, env, says } of [
    { what: 'an unknown key', config: 'color: red\n', says: /color/ },
    {
      what: 'a missing seal key',
      config: 'seal: { type: static, key_id: a, key_file: /nowhere/key }\n',
      says: /cannot be read/,
    },
    { what: 'no configuration at all', args: ['server'], says: /--config FILE/ },
    { what: 'both --dev and --config', args: ['server', '--dev', '--config', 'x'], says: /not both/ },
    {
      what: 'a dev node on a public address',
      args: ['server', '--dev', '--listen', '0.0.0.0:0'],
      says: /must listen on a loopback address/,
    },
    {
      what: 'an invalid data directory',
      args: ['server', '--dev', '--data-dir', '/dev/null/x', '--listen', '127.0.0.1:0'],
      says: /cannot be used: ENOTDIR/,
    },
    {
      what: 'TLS files that are not PEM',
      config: 'telemetry: {}\n',
      env: {
        TRANSITD_LISTEN_TLS_CERT_FILE: join(root, 'package.json'),
        TRANSITD_LISTEN_TLS_KEY_FILE: join(root, 'package.json'),
        TRANSITD_LISTEN_TLS_DISABLE: 'false',
      },
      says: /holds no certificate in PEM/,
    },
    { what: 'a misspelt failpoint', config: '', env: { TRANSITD_FAILPOINTS: 'bogus' }, says: /unknown failpoint/ },
    { what: 'an unknown command', args: ['fly'], says: /unknown command/ },
  ] as { what: string; config?: string; args?: string[]; env?: Record<string, string>; says: RegExp }[]) {
    it(`reports in one sentence, with exit code 1, why it does not start: ${what}`, async function () {
      this.timeout(processMs);
      const server = args === undefined ? launch(configured(config).file, env) : bench.launch({ dataDir: '', command: args });
      expect((await server.exited).code, server.stderr).to.equal(1);
      expect(server.stderr).to.match(says);
      expect(server.stderr).not.to.match(/\n\s+at /);
    });
  }

  it('refuses a port in use and a data directory in use, with exit code 1', async function () {
    this.timeout(processMs);
    const { folder, file } = configured();
    const first = await launch(file).ready();
    const second = launch(file);
    expect((await second.exited).code).to.equal(1);
    expect(second.stderr).to.match(/use/);
    const third = launch(file, { TRANSITD_DATA_DIR: join(folder, 'other'), TRANSITD_LISTEN_ADDRESS: new URL(first.url).host });
    expect((await third.exited).code).to.equal(1);
    expect(third.stderr).to.match(/is in use/);
    for (const { stderr } of [second, third]) {
      const levels = stderr
        .trimEnd()
        .split('\n')
        .map((line) => Reflect.get(JSON.parse(line), 'level'));
      expect(levels.at(-1), 'each line of the log is JSON, and the last one says why').to.equal('fatal');
    }
    expect((await first.call('PUT', 'sys/init', { secret_shares: 1, secret_threshold: 1 }, null)).status).to.equal(200);
    expect(await health(first)).to.equal(503);
  });

  it('finishes requests in flight when it is stopped, and loses none', async function () {
    this.timeout(processMs);
    const dataDir = bench.folder();
    const server = await bench.start({ dataDir });
    const token = server.rootToken;
    const acknowledged: string[] = [];
    const statuses = new Set<number>();
    const load = Array.from({ length: 6 }, async (_, writer) => {
      for (let serial = 0; ; serial += 1) {
        const name = `w${writer}-${serial}`;
        try {
          const answer = await server.call('POST', `transit/keys/${name}`, {}, token);
          statuses.add(answer.status);
          if (answer.status === 200) acknowledged.push(name);
          else return;
        } catch {
          return;
        }
      }
    });
    await until(() => acknowledged.length >= 50);
    expect((await server.stop()).code).to.equal(0);
    await Promise.all(load);
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).to.deep.equal([]);
    const again = await bench.start({ dataDir });
    const names = (await again.call('LIST', 'transit/keys')).at('data.keys') as string[];
    expect(acknowledged.filter((name) => !names.includes(name))).to.deep.equal([]);
  });

  it('serves metrics and health on the telemetry listener, also while sealed, and nothing else', async function () {
    this.timeout(processMs);
    const { file } = configured('telemetry: { address: "127.0.0.1:0" }\n');
    const server = launch(file);
    const address = (await server.log(/"telemetry":"(http[^"]+)"/))[1];
    await server.ready();
    await server.call('PUT', 'sys/init', { secret_shares: 1, secret_threshold: 1 }, null);
    const metrics = await (await fetch(`${address}/metrics`)).text();
    expect(metrics).to.match(/^svc_core_unsealed 0$/m);
    expect((await fetch(`${address}/v1/sys/health`)).status).to.equal(503);
    expect((await fetch(`${address}/v1/sys/init`)).status).to.equal(404);
    expect((await fetch(`${address}/`)).status).to.equal(404);
    expect((await fetch(`${address}/metrics`, { method: 'POST' })).status).to.equal(405);
  });

  it('uses TLS, and reloads the certificate and the log level on SIGHUP without a restart', async function () {
    this.timeout(processMs);
    const folder = bench.folder();
    const certificate = (name: string, days = '2'): void => {
      const [key, cert] = [join(folder, 'tls.key'), join(folder, 'tls.crt')];
      execFileSync(
        'openssl',
        [
          'req',
          '-x509',
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:prime256v1',
          '-nodes',
          '-keyout',
          key,
          '-out',
          cert,
          '-days',
          days,
          '-subj',
          `/CN=${name}`,
        ],
        { stdio: 'ignore' },
      );
    };
    const servedName = (url: string): Promise<string> =>
      new Promise((resolve, reject) => {
        request(`${url}/v1/sys/health`, { rejectUnauthorized: false, agent: false }, (answer) => {
          const { subject } = (answer.socket as import('node:tls').TLSSocket).getPeerCertificate();
          answer.resume();
          resolve(String(subject.CN));
        })
          .on('error', reject)
          .end();
      });
    /** When the certificate in use expires, as the metrics show it; and when the one in the file does. */
    const expiry = async (): Promise<{ readonly inUse: number; readonly inFile: number }> => {
      const [, telemetry] = await server.log(/"telemetry":"(http[^"]+)"/);
      const metrics = await (await fetch(`${telemetry}/metrics`)).text();
      const { host } = new URL(server.url);
      const [, inUse] =
        new RegExp(`^svc_certificate_expiry_timestamp_seconds\\{address="${host}"\\} (\\d+)$`, 'm').exec(metrics) ?? [];
      const { validToDate } = new X509Certificate(readFileSync(join(folder, 'tls.crt')));
      return { inUse: Number(inUse), inFile: validToDate.getTime() / 1000 };
    };
    certificate('before');
    mkdirSync(join(folder, 'data'), { mode: 0o700 });
    const file = join(folder, 'transitd.yaml');
    const config = (level: string): string =>
      `node_id: n1\ndata_dir: ${folder}/data\nlog: { level: ${level} }\nlisteners:\n` +
      `  - address: "127.0.0.1:0"\n    tls: { cert_file: ${folder}/tls.crt, key_file: ${folder}/tls.key }\n`;
    writeFileSync(file, config('info'));
    const server = bench.launch({ dataDir: '', command: ['server', '--config', file], env: { TRANSITD_LOG_LEVEL: 'info' } });
    await server.ready();
    expect(server.url).to.match(/^https:/);
    expect(await servedName(server.url)).to.equal('before');
    const before = await expiry();
    expect(before.inUse).to.equal(before.inFile);
    certificate('after', '9');
    expect((await expiry()).inUse, 'the file is new, but not in use').to.equal(before.inUse);
    server.child.kill('SIGHUP');
    await server.log(/"msg":"reloaded"/);
    expect(await servedName(server.url)).to.equal('after');
    const after = await expiry();
    expect(after.inUse).to.equal(after.inFile).and.to.be.above(before.inUse);
    certificate('later');
    writeFileSync(
      file,
      config('info').replace('tls: {', 'headers_timeout: 5s\n    tls: {').replace('127.0.0.1:0', '127.0.0.1:1'),
    );
    server.child.kill('SIGHUP');
    await server.log(
      /"settings":\["listeners\.0\.address","listeners\.0\.headers_timeout"\],"msg":"these settings[^}]+need a restart/,
    );
    await server.log(/"msg":"reloaded"[\s\S]+"certificates":1,"msg":"reloaded"/);
    expect(await servedName(server.url), 'another change of the listener').to.equal('later');
    certificate('latest');
    writeFileSync(file, 'listeners: []\n');
    server.child.kill('SIGHUP');
    await server.log(/the configuration file was not reloaded[\s\S]+"certificates":1,"msg":"reloaded"/);
    expect(await servedName(server.url), 'a file with faults').to.equal('latest');
    writeFileSync(join(folder, 'tls.crt'), 'broken');
    server.child.kill('SIGHUP');
    await server.log(/holds no certificate in PEM[^}]+it keeps its own[\s\S]+"certificates":0,"msg":"reloaded"/);
    expect(await servedName(server.url), 'a broken certificate').to.equal('latest');
  });
});
