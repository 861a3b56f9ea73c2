// Checks the configuration files in deploy/ with the programs that read them.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { root } from '../process/live-server.ts';

const run = promisify(execFile);

describe('the files in deploy/', () => {
  for (const { what, command } of [
    { what: 'a configuration of HAProxy', command: ['haproxy', '-c', '-f', 'deploy/haproxy/haproxy.cfg'] },
    { what: 'a configuration of Prometheus', command: ['promtool', 'check', 'config', 'deploy/prometheus/prometheus.yml'] },
    { what: 'rules that do what their cases say', command: ['promtool', 'test', 'rules', 'deploy/prometheus/rules.test.yml'] },
  ]) {
    it(`are ${what}`, async () => {
      const [program = '', ...args] = command;
      await run(program, args, { cwd: root });
    });
  }
});
