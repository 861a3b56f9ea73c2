// @live
// Every live server ends with a search for secrets. These tests prove that the search finds them.
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { startAudited } from './audited-server.ts';
import { base64, processMs, Workbench } from './live-server.ts';
import { mark, planted, SecretWatch } from './secret-watch.ts';

const failure = async (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => 'nothing was found',
    (error: unknown) => String(error),
  );

/** Writes its first argument to the log, then becomes the server. */
const saying = (text: string): string[] => ['sh', '-c', 'printf "%s\\n" "$1" >&2; shift; exec "$@"', 'sh', text];

describe('the search for secrets', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean().catch(() => undefined)); // each test reports the finding itself

  for (const { name, told } of [
    { name: 'as it is', told: mark },
    { name: 'in base64', told: base64(planted('x')) },
    { name: 'in base64, after one more byte', told: base64(planted('xy')) },
    { name: 'in base64, after two more bytes', told: base64(planted('xyz')) },
    { name: 'in base64url', told: Buffer.from(planted('?>')).toString('base64url') },
    { name: 'in hex', told: Buffer.from(planted('x')).toString('hex').toUpperCase() },
    { name: 'percent-encoded', told: Buffer.from(mark).toString('hex').replace(/../g, '%$&') },
  ])
    it(`finds a planted secret ${name}`, () => {
      expect(new SecretWatch().findings('the log', `{"msg":"so: ${told}."}`)).to.have.length(1);
      expect(new SecretWatch().findings('the log', '{"msg":"nothing"}')).to.deep.equal([]);
    });

  it('learns secrets from requests and responses, and reports a finding without the secret', () => {
    const share = Buffer.from('a share of thirty-three bytes, no').toString('base64');
    const plaintext = 'a plaintext that was decrypted';
    for (const [told, secret] of [
      [{ auth: { client_token: 's.aTokenOfSomeLength' } }, 's.aTokenOfSomeLength'],
      [{ keys: ['k'], keys_base64: [share] }, share],
      [{ data: { batch_results: [{ plaintext: base64(plaintext) }] } }, plaintext],
      [JSON.stringify({ password: 'correct horse battery' }), 'correct horse battery'],
    ] as const) {
      const watch = new SecretWatch();
      watch.learn(told);
      const [found = '', ...more] = watch.findings('the log', `{"msg":"${secret}"}`);
      expect(found, JSON.stringify(told)).to.match(/^\w+ is in the log, at byte 8$/);
      expect(more).to.deep.equal([]);
      expect(found).not.to.include(secret);
    }
  });

  it('fails the test if the log of a live server contains a secret', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder(), wrapper: saying(`"msg":"${base64(planted('told'))}"`) });
    expect(await failure(server.stop())).to.match(/a secret was written:\nthe planted mark is in the log/);
  });

  it('fails the test if the log contains the root token, even of a killed process', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    const other = await bench.start({ dataDir: bench.folder(), wrapper: saying(server.rootToken) });
    other.secrets.add('the root token', server.rootToken);
    other.child.kill('SIGKILL');
    await other.exited;
    expect(await failure(bench.stopAll())).to.match(/the root token is in the log/);
  });

  it('fails the test if the audit or a renamed file of it contains a secret', async function () {
    this.timeout(processMs);
    for (const suffix of ['', '.1']) {
      const { server, rootToken, auditFile } = await startAudited(bench);
      await server.call('POST', 'auth/token/create', { policies: ['default'] }, rootToken);
      appendFileSync(`${auditFile}${suffix}`, planted('told'));
      expect(await failure(server.stop())).to.include(`the planted mark is in ${auditFile}${suffix}`);
    }
  });

  it('fails the test if the metrics contain a secret', async function () {
    this.timeout(processMs);
    const page = createServer((_req, res) => void res.end(`svc_told{key="${mark}"} 1`)).listen(0, '127.0.0.1');
    await once(page, 'listening');
    const { port } = page.address() as AddressInfo;
    const server = await bench.start({
      dataDir: bench.folder(),
      wrapper: saying(`{"telemetry":"http://127.0.0.1:${port}"}`),
    });
    expect(await failure(server.stop())).to.match(/the planted mark is in the metrics/);
    page.close();
  });
});
