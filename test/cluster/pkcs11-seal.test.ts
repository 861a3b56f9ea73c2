// @live
// A key in SoftHSM unseals a node. The command blocks of docs/seals.md set up both.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse } from 'yaml';
import { needsToken, softhsmLibrary, TokenFolder } from '../../packages/pkcs11/test/softhsm.ts';
import { type Answer, type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { blockOf } from './harness/seals-page.ts';
import { until } from './harness/until.ts';

const pin = '271828';

describe('a node with a pkcs11 seal', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let tokens: TokenFolder;
  let configFile: string;
  let pinFile: string;
  let config: { readonly seal: object; readonly pkcs11_libraries: readonly { readonly name: string }[] };
  let server: LiveServer;
  let rootToken: string;

  const start = async (seal: object = {}, more: object = {}): Promise<void> => {
    writeFileSync(configFile, JSON.stringify({ ...config, ...more, seal: { ...config.seal, pin_file: pinFile, ...seal } }));
    server = await bench.launch({ dataDir: '', command: ['server', '--config', configFile] }).ready();
  };
  const health = (): Promise<Answer> => server.call('GET', 'sys/health', undefined, null);
  const reaches = (status: number, failure?: string): Promise<unknown> =>
    until(`health ${status}`, async () => {
      const answer = await health();
      return answer.status === status && answer.at('seal_failure') === failure;
    });

  before(async function () {
    needsToken(this);
    tokens = new TokenFolder();
    await promisify(execFile)('sh', ['-ec', blockOf('sh', 'pkcs11')], {
      cwd: bench.folder(),
      env: { ...process.env, PIN: pin, SO_PIN: '8765432' },
    });
    pinFile = join(bench.folder(), 'pin');
    writeFileSync(pinFile, `${pin}\n`, { mode: 0o600 });
    configFile = join(bench.folder(), 'transitd.json');
    const { seal, pkcs11_libraries } = parse(blockOf('yaml', 'pkcs11')) as typeof config;
    config = {
      ...{ node_id: 'n1', data_dir: join(bench.folder(), 'data'), listeners: [{ address: '127.0.0.1:0', tls_disable: true }] },
      seal,
      pkcs11_libraries: pkcs11_libraries.map((library) => ({ ...library, path: softhsmLibrary })),
    };
  });
  after(async () => {
    await bench.clean();
    tokens?.remove();
  });

  it('is initialized, and unseals by itself after a restart', async () => {
    await start();
    const created = await server.call('POST', 'sys/init', { recovery_shares: 1, recovery_threshold: 1 }, null);
    expect(created.status, `${created.text} ${server.stderr}`).to.equal(200);
    rootToken = String(created.at('root_token'));
    await server.stop('SIGTERM');
    await start();
    await reaches(200);
    const status = await server.call('GET', 'sys/seal-backend-status', undefined, null);
    expect([status.at('healthy'), status.at('backends.0.name')]).to.deep.equal([true, 'pkcs11']);
    await server.stop('SIGTERM');
  });

  it('gives random bytes of the token on every thread, and refuses instead of giving others', async () => {
    await start({}, { workers: 2 });
    await reaches(200);
    await until('both gateways listen', () => server.stderr.match(/a gateway thread listens/g)?.length === 2);
    const draw = (path: string): Promise<Answer> => server.call('POST', path, {}, rootToken);
    const paths = ['transit/random/seal/32', 'transit/random/all/32', 'sys/tools/random/seal/32', 'sys/tools/random/all/32'];
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => paths)
        .flat()
        .map(draw),
    );
    expect(
      answers.map(({ status, text }) => (status === 200 && text.includes('"warnings":null') ? 200 : `${status} ${text}`)),
    ).to.deep.equal(answers.map(() => 200));
    expect(new Set(answers.map((answer) => answer.at('data.random_bytes'))).size).to.equal(answers.length);
    expect((await draw('transit/random/seal/1025')).status).to.equal(400);
    writeFileSync(pinFile, '');
    const refused = await draw('transit/random/seal/32');
    expect([refused.status, refused.text]).to.satisfy(
      () => refused.status === 503 && /refuses the credentials of this node/.test(refused.text),
    );
    expect((await draw('transit/random/32')).status).to.equal(200);
    expect((await health()).status).to.equal(200);
    writeFileSync(pinFile, `${pin}\n`);
    await until('the token is asked again', async () => (await draw('transit/random/seal/32')).status === 200);
    await server.stop('SIGTERM');
  });

  it('stays sealed with a wrong PIN or without the key, and says why', async () => {
    await start({ key_label: 'other' });
    await reaches(503, 'wrong_key');
    expect(server.stderr).to.match(/the pkcs11 seal with the key transitd\/other: /);
    await server.stop('SIGTERM');
    writeFileSync(pinFile, '314159\n');
    await start();
    await reaches(503, 'permission');
    expect(server.stderr)
      .to.match(/the token refused the PIN/)
      .and.not.contain('314159');
    writeFileSync(pinFile, `${pin}\n`);
    await reaches(200); // the file is read again
    await server.stop('SIGTERM');
  });
});
