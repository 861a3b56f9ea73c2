// Checks the configuration files in deploy/ with the programs that read them.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { root } from '../process/live-server.ts';

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
    it(`are ${what}`, async () => {
      const [program = '', ...args] = command;
      await run(program, args, { cwd: root });
    });
  }
});
