// Checks the configuration files in deploy/ with the programs that read them.
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { processMs, root, Workbench } from '../process/live-server.ts';

const run = promisify(execFile);

describe('the files in deploy/', () => {
  for (const { what, command } of [
    { what: 'a valid HAProxy configuration', command: ['haproxy', '-c', '-f', 'deploy/haproxy/haproxy.cfg'] },
    { what: 'a valid Prometheus configuration', command: ['promtool', 'check', 'config', 'deploy/prometheus/prometheus.yml'] },
    {
      what: 'alert rules that pass their tests',
      command: [
        ...['promtool', 'test', 'rules', 'deploy/prometheus/rules.test.yml'],
        ...['deploy/prometheus/rules.replication.test.yml', 'deploy/prometheus/rules.days.test.yml'],
      ],
    },
  ]) {
    it(`are ${what}`, async function () {
      this.timeout(processMs);
      const [program = '', ...args] = command;
      await run(program, args, { cwd: root });
    });
  }
});

describe('the metrics of a node', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('pass `promtool check metrics`', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    expect((await server.call('POST', 'transit/keys/a', {})).status).to.equal(200);
    const { text } = await server.call('GET', 'sys/metrics?format=prometheus');
    expect(text).to.match(/^svc_route_transit__count\{/m);
    const { status, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
    expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
  });
});
