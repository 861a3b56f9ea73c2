// Runs `npm run cluster` as a new user does.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { Answer, nodeBinary, processMs, root } from '../process/live-server.ts';
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
  /** A new folder for each test: a cluster keeps the addresses of its members. */
  let folder = '';
  let child: ChildProcess | undefined;
  let output = '';

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-dev-cluster-'));
  });
  afterEach(async () => {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** @param workers - gateways of each node: the default costs as much processor time as the rest of a start */
  async function start(port: number, workers: 'auto' | '0', ...more: readonly string[]): Promise<void> {
    output = '';
    const args = [join(root, 'scripts/cluster.ts'), '--data-dir', folder, '--port', String(port), ...more];
    const env = { ...process.env, TRANSITD_WORKERS: workers };
    const started = spawn(nodeBinary, args, { stdio: ['pipe', 'pipe', 'pipe'], env });
    child = started;
    for (const stream of [started.stdout, started.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    await until('it says that it is ready', () => output.includes('Keys: ') || started.exitCode !== null, {
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
    await start(port, 'auto');
    const encrypted = await served(port + 10, 'transit/encrypt/my-key', { plaintext: 'AAAA' });
    expect(encrypted.status, encrypted.text).to.equal(200);
    for (const name of ['seal.key', 'root-token'])
      expect(statSync(join(folder, 'dev-cluster', name)).mode & 0o777, name).to.equal(0o600);
    expect(statSync(join(folder, 'dev-cluster')).mode & 0o777).to.equal(0o700);
    for (const name of ['n1', 'n2', 'n3'])
      await until(`lines of ${name}`, () => output.includes(`${name} │`), { explain: () => output });
    expect(await stop(), output).to.equal(0);

    await start(port, '0');
    const ciphertext = encrypted.string('data.ciphertext');
    for (const other of [port, port + 10, port + 20]) {
      const decrypted = await served(other, 'transit/decrypt/my-key', { ciphertext });
      expect(decrypted.at('data.plaintext'), decrypted.text).to.equal('AAAA');
    }
    expect(await stop(), output).to.equal(0);
  });

  const press = (keys: string): void => void child?.stdin?.write(keys);
  /** Waits until a line printed after the mark matches, and returns it. */
  const line = (pattern: RegExp, mark: number): Promise<string> =>
    until(`a line ${pattern}`, () => pattern.exec(output.slice(mark))?.[0] ?? false, { explain: () => output });

  it('survives the kill that it prints: one line each for the death, the election and the return', async () => {
    await start(await freePorts(), '0');
    const [, pid, name] = /kill -9 (\d+) {3}# (n\d), the active node/.exec(output) ?? [];
    const mark = output.length;
    process.kill(Number(pid), 'SIGKILL');
    // The death comes first: the lines of the election and of the return follow it.
    const death = await line(/n\d │ died \(SIGKILL\).*\n/, mark);
    const afterDeath = output.indexOf(death, mark) + death.length;
    await line(/n\d │ is the active node now \(process \d+\), [\d.]+ s after the loss of the one before/, afterDeath);
    await line(new RegExp(`${name} │ is (?:back as a standby|the active node now) \\(process \\d+\\)`), afterDeath);
    const lines = output.slice(mark).trim().split('\n');
    expect(lines.filter((each) => each.includes('died (SIGKILL)'))).to.deep.equal([
      `${name} │ died (SIGKILL); it starts again in 2 s`,
    ]);
    // On a busy machine leadership may change once more. The output never repeats a line.
    expect(lines.filter((each, index) => each === lines[index - 1])).to.deep.equal([]);
    press('q');
    await until('it ends', () => child?.exitCode === 0, { explain: () => output });
  });

  it('with --load kills, pauses, cuts off and slows nodes by keys, and no answer is wrong', async () => {
    await start(await freePorts(), '0', '--load');
    await line(/load │ [1-9]\d* requests\/s \([1-9]\d* writes\)/, 0);
    let mark = output.length;
    press('1k');
    await line(/n1 │ died \(SIGKILL\)/, mark);
    await line(/n1 │ is (?:back|the active)/, mark);
    mark = output.length;
    press('2p');
    await line(/n2 │ paused/, mark);
    press('p');
    await line(/n2 │ continues/, mark);
    if (process.platform === 'linux') {
      mark = output.length;
      press('3c');
      await line(/n3 │ cut off/, mark);
      await line(/n3 │ has no contact with the active node/, mark);
      press('c');
      await line(/n3 │ connected again/, mark);
      await line(/n3 │ is (?:a standby|the active node) now/, mark);
    }
    mark = output.length;
    press('1s');
    if (
      /takes 200 ms longer/.test(await line(/n1 │ (?:each sync of its disk takes 200 ms longer|its disk cannot|strace).*/, mark))
    ) {
      press('s');
      await line(/n1 │ its disk is fast again/, mark);
    }
    mark = output.length;
    await line(/load │ [1-9]\d* requests\/s \([1-9]\d* writes\), 0 failed/, mark);
    expect(output).to.not.match(/ [1-9]\d* wrong answers/);
    press('q');
    await until('it ends', () => child?.exitCode === 0, { explain: () => output });
  });

  for (const [offset, name, what] of [
    [0, 'n1', 'API'],
    [1, 'n1', 'cluster'],
    [10, 'n2', 'API'],
    [11, 'n2', 'cluster'],
    [20, 'n3', 'API'],
    [21, 'n3', 'cluster'],
  ] as const)
    it(`starts nothing if the ${what} port of ${name} is in use, and says so in one sentence`, async () => {
      const port = await freePorts();
      // A server that answers the health probe, as a node of another cluster does.
      const blocker = createServer((_, response) => response.end()).listen(port + offset, '127.0.0.1');
      await once(blocker, 'listening');
      try {
        const args = [join(root, 'scripts/cluster.ts'), '--data-dir', folder, '--port', String(port)];
        const ended = spawn(nodeBinary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
        const texts = Promise.all([text(ended.stdout), text(ended.stderr)]);
        const [status] = await once(ended, 'close');
        expect([status, ...(await texts)]).to.deep.equal([
          1,
          '',
          `cluster: 127.0.0.1:${port + offset}, which ${name} needs, is in use: stop the other program, or use another --port\n`,
        ]);
      } finally {
        blocker.close();
      }
    });

  it('refuses another port for a cluster that exists, and names the port of that cluster', () => {
    const secrets = join(folder, 'dev-cluster');
    mkdirSync(secrets);
    writeFileSync(join(secrets, 'root-token'), 'token\n');
    writeFileSync(join(secrets, 'n1.json'), JSON.stringify({ api_addr: 'http://127.0.0.1:8200' }));
    const args = [join(root, 'scripts/cluster.ts'), '--data-dir', folder, '--port', '9200'];
    const { status, stderr } = spawnSync(nodeBinary, args, { encoding: 'utf8', timeout: processMs });
    expect({ status, stderr }).to.deep.equal({
      status: 1,
      stderr: `cluster: the cluster in ${folder} was created with --port 8200: use this port, or another --data-dir\n`,
    });
  });
});
