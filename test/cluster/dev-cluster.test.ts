// `npm run cluster`, as a new user meets it.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Answer, nodeBinary, root } from '../process/live-server.ts';
import { freePort } from './harness/free-port.ts';
import { isRefusedForNow } from './harness/outcome.ts';
import { scenarioMs } from './harness/scenario.ts';
import { until } from './harness/until.ts';

/** Reserves six ports: three API ports, ten apart, each with the next port for the cluster. */
async function freePorts(): Promise<number> {
  return until('a place for six ports', async () => {
    const port = await freePort('127.0.0.1');
    const wanted = [1, 10, 11, 20, 21].map((offset) => freePort('127.0.0.1', port + offset));
    return Promise.all(wanted).then(
      () => port,
      () => undefined,
    );
  });
}

describe('npm run cluster', function () {
  this.timeout(scenarioMs);
  const folder = mkdtempSync(join(tmpdir(), 'transitd-dev-cluster-'));
  let child: ChildProcess | undefined;
  let output = '';

  afterEach(async () => {
    await stop();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  async function start(port: number): Promise<void> {
    output = '';
    const args = [join(root, 'scripts/cluster.ts'), '--data-dir', folder, '--port', String(port)];
    const started = spawn(nodeBinary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    child = started;
    for (const stream of [started.stdout, started.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    await until('it says that it is ready', () => output.includes('root token') || started.exitCode !== null, {
      explain: () => output,
    });
    expect(output).to.include('NOT FOR PRODUCTION');
  }

  async function stop(): Promise<number | null> {
    const ended = child;
    if (ended === undefined || ended.exitCode !== null) return ended?.exitCode ?? null;
    return new Promise((resolve) => {
      ended.once('close', resolve);
      ended.kill('SIGINT');
    });
  }

  const ask = async (port: number, path: string, body: unknown): Promise<Answer> => {
    const token = readFileSync(join(folder, 'dev-cluster/root-token'), 'utf8').trim();
    const response = await fetch(`http://127.0.0.1:${port}/v1/${path}`, {
      method: 'POST',
      headers: { 'X-Service-Token': token },
      body: JSON.stringify(body),
    });
    return new Answer(response.status, response.headers, await response.text());
  };

  /** The default timing assumes machines that never stall; on others leadership may change once more. */
  const served = (port: number, path: string, body: unknown): Promise<Answer> =>
    until(`${port} answers ${path}`, async () => {
      const answer = await ask(port, path, body);
      return !isRefusedForNow(answer) && answer;
    });

  it('starts three nodes that serve, keeps its secrets readable by their owner only, and finds its data again', async () => {
    const port = await freePorts();
    await start(port);
    const encrypted = await served(port + 10, 'transit/encrypt/my-key', { plaintext: 'AAAA' });
    expect(encrypted.status, encrypted.text).to.equal(200);
    for (const name of ['seal.key', 'root-token'])
      expect(statSync(join(folder, 'dev-cluster', name)).mode & 0o777, name).to.equal(0o600);
    expect(statSync(join(folder, 'dev-cluster')).mode & 0o777).to.equal(0o700);
    for (const name of ['n1', 'n2', 'n3']) expect(output, `lines of ${name}`).to.include(`${name} │`);
    expect(await stop(), output).to.equal(0);

    await start(port);
    const ciphertext = encrypted.string('data.ciphertext');
    for (const other of [port, port + 10, port + 20]) {
      const decrypted = await served(other, 'transit/decrypt/my-key', { ciphertext });
      expect(decrypted.at('data.plaintext'), decrypted.text).to.equal('AAAA');
    }
    expect(await stop(), output).to.equal(0);
  });
});
