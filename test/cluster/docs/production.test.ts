// @live
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { shellBlocks } from '../../docs/page.ts';
import { processMs, root } from '../../process/live-server.ts';
import { Machines } from './machines.ts';

const page = 'docs/production.md';
const nodes = ['n1', 'n2', 'n3'];

/** The machines on which the blocks of each step run, in the order of the page. `each` stands for all nodes. */
const steps: readonly (readonly [heading: string, ...machines: readonly string[]])[] = [
  ['1. Certificates', 'admin'],
  ['2. Each node', 'each'],
  ['3. Initialize and unseal', 'admin', 'admin', 'admin'],
  ['4. Administrators', 'admin'],
  ['5. The load balancer', 'proxy'],
  ['6. The first application', 'admin', 'admin', 'n1'],
  ['7. Monitoring', 'admin'],
  ['8. Backup', 'admin', 'backup'],
  ['9. Restore drill', 'drill'],
  ['10. Changes in operation', 'n2', 'admin', 'n2'],
];

describe(page, function () {
  this.timeout(processMs);
  let machines: Machines;
  before(async () => {
    machines = await Machines.start([...nodes.map((node) => `${node}.example`), 'transitd.example']);
  });
  after(() => machines.end());

  /** Copies the files that the page tells the reader to copy, before the first block on a machine. */
  const prepare = (machine: string): void => {
    const given = (...names: readonly string[]): readonly string[] => names.map((name) => `/root/${name}`);
    if (nodes.includes(machine)) machines.copy('admin', machine, given('ca.pem', `${machine}.pem`, `${machine}.key`));
    else if (machine === 'admin') machines.provide('admin', 'deploy/prometheus/rules.yml');
    else if (machine === 'proxy') machines.copy('admin', machine, given('ca.pem'), '/etc/haproxy');
    else if (machine === 'backup')
      machines.copy('admin', machine, given('ca.pem', 'backup-token', 'transitd-backup.service', 'transitd-backup.timer'));
    else {
      machines.copy('admin', machine, given('share-1', 'share-2', 'alice-password'));
      machines.copy('backup', machine, ['/var/backups/transitd'], '/var/backups');
    }
  };

  it('has commands that take three machines from nothing to production', async () => {
    const outputs = new Map<string, string>();
    for (const [heading, ...places] of steps) {
      const blocks = shellBlocks(page, heading);
      expect(blocks, heading).to.have.length(places.length);
      for (const [at, place] of places.entries())
        await Promise.all(
          (place === 'each' ? nodes : [place]).map(async (machine) => {
            if (!outputs.has(machine)) prepare(machine);
            const block = (blocks[at] ?? '').replace('NODE=n1', `NODE=${machine}`);
            const { code, stdout, stderr } = await machines.run(machine, block);
            const explanation = `${heading}, block ${at + 1}, on ${machine}:\n${stdout}${stderr}${machines.logs()}`;
            expect(code, explanation).to.equal(0);
            outputs.set(machine, `${outputs.get(machine) ?? ''}${stdout}`);
          }),
        );
    }
    expect(shellBlocks(page), 'a block that no step runs').to.have.length(
      steps.reduce((sum, [, ...places]) => sum + places.length, 0),
    );
    expect(outputs.get('admin')?.match(/^svc_core_unsealed\S* 1$/gm)).to.have.length(3);
    expect(outputs.get('drill')).to.match(/^orders$/m);
  });

  it('has a wait of step 10 that ends when the token is refused', async () => {
    const block = shellBlocks(page, '10. Changes in operation')[1] ?? '';
    const { code, stderr } = await machines.run('admin', `export TRANSITD_TOKEN=s.expired\n${block}`);
    expect(code, stderr).to.be.oneOf([1, 2]);
    expect(stderr).to.include('403');
  });

  it('names alerts that exist', () => {
    const named = [...readFileSync(join(root, page), 'utf8').matchAll(/`(Transitd[A-Z]\w+)`/g)].map(([, alert]) => alert);
    expect(named).to.include('TransitdQuorumLost');
    const rules = readFileSync(join(root, 'deploy/prometheus/rules.yml'), 'utf8');
    expect(named.filter((alert) => !rules.includes(`- alert: ${alert}\n`))).to.deep.equal([]);
  });
});
