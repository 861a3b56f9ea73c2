// @live
// `transitd monitor` and `sys/monitor`: the log of a live node, over the API.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { entry, type LiveServer, nodeBinary, processMs, Workbench } from '../process/live-server.ts';
import { tokenWith } from '../process/token-with.ts';
import { expectCode, run } from '../process/transitd-command.ts';

describe('following the log of a node', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  afterEach(() => bench.clean());

  const environment = (server: LiveServer, token = server.rootToken): Record<string, string> => ({
    HOME: '/',
    TRANSITD_ADDR: server.url,
    TRANSITD_TOKEN: token,
  });

  /** Starts the command, and resolves with its lines once the first one is there. */
  async function monitor(server: LiveServer, ...args: readonly string[]) {
    const child = spawn(nodeBinary, [entry, 'monitor', ...args], {
      env: { PATH: process.env['PATH'], ...environment(server) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    /** Reads up to the next line that matches. */
    const line = async (pattern: RegExp): Promise<string> => {
      for (;;) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error(`no line like ${pattern}`);
        if (pattern.test(value)) return value;
      }
    };
    await line(/following the log/);
    return { child, ended, line };
  }

  for (const [name, env] of [
    ['of one thread', {}],
    ['with gateway threads', { TRANSITD_WORKERS: '2' }],
  ] as const)
    it(`prints its lines as they are written, and ends when the node stops: a node ${name}`, async () => {
      const server = await bench.start({ dataDir: bench.folder(), env });
      const text = await monitor(server);
      const json = await monitor(server, '--log-level=error', '--format=json');
      server.child.kill('SIGHUP');
      await text.line(/^\S+Z \[INFO\] {2}reloaded: logLevel=info certificates=0$/);
      expect((await server.stop()).code).to.equal(0);
      expect(JSON.parse(await json.line(/./)), 'nothing below the level').to.include({ msg: 'the node stops' });
      expect(await Promise.all([text.ended, json.ended])).to.deep.equal([0, 0]);
    });

  it('ends quietly when nobody reads its output any longer', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    const { child, ended } = await monitor(server);
    child.stdout.destroy();
    server.child.kill('SIGHUP');
    expect(await ended).to.equal(0);
  });

  it('needs sudo, and a level and a format that exist', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    const reader = await tokenWith(server, 'path "sys/monitor" { capabilities = ["read"] }');
    const refused = expectCode(await run(['monitor'], { env: environment(server, reader) }), 2);
    expect(refused.stderr).to.include('permission denied');
    for (const query of ['log_level=loud', 'log_format=xml'])
      expect((await server.call('GET', `sys/monitor?${query}`)).status, query).to.equal(400);
  });

  it('is possible eight times at once', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    const abort = new AbortController();
    const follow = async (): Promise<number> => {
      const headers = { 'X-Service-Token': server.rootToken };
      return (await fetch(`${server.url}/v1/sys/monitor`, { headers, signal: abort.signal })).status;
    };
    const statuses = await Promise.all(Array.from({ length: 9 }, follow));
    expect(statuses.toSorted()).to.deep.equal([...Array(8).fill(200), 503]);
    abort.abort();
  });
});
