// @live
// The Python client hvac, unchanged against a live node. It is installed from the Python registry into its own folder.
import { join } from 'node:path';
import { expect } from 'chai';
import { Workbench } from '../process/live-server.ts';
import { mark } from '../process/secret-watch.ts';
import { pythonWith } from './python.ts';
import { run } from './run.ts';
import { startWorkloadNode } from './workload-node.ts';

const version = '2.4.0';
const script = join(import.meta.dirname, 'hvac_client.py');
const loginScript = join(import.meta.dirname, 'hvac_logins.py');

describe('hvac', () => {
  const bench = new Workbench();
  after(() => bench.clean());

  it(`${version} performs the usual operations of services`, async function () {
    this.timeout(600_000);
    const python = await pythonWith([`hvac==${version}`]);
    if (python === undefined) return this.skip();
    const server = await bench.start({ dataDir: bench.folder() });
    const { code, stdout, stderr } = await run(python, [script, server.url], {
      env: { HVAC_TOKEN: server.rootToken, HVAC_PLANTED: mark },
    });
    expect(code, stderr).to.equal(0);
    expect(JSON.parse(stdout)).to.deep.equal({
      status: { health: false, health_head: 200, initialized: true, sealed: false, leader: true, authenticated: true },
      keys: {
        listed: ['letters', 'orders'],
        generic: ['letters', 'orders'],
        latest: 2,
        exported: ['1'],
        refused: 'InvalidRequest',
        missing: null,
        missing_key: 'InvalidPath',
      },
      data: {
        prefixes: ['svc:v1:', 'svc:v2:'],
        decrypted: true,
        generic: true,
        batch: [true, true],
        verified: true,
        not_verified: false,
        data_key: true,
        random: 16,
        hash: 64,
        refused: 'InvalidRequest',
      },
      policies: { read: true, listed: ['default', 'reader', 'root', 'writer'], removed: 'InvalidPath', broken: 'InvalidRequest' },
      tokens: {
        policies: ['default', 'writer'],
        looked_up: true,
        renewed_self: 1_200,
        renewed: 300,
        by_accessor: '',
        listed: true,
        capabilities: ['update'],
        refused: 'Forbidden',
        revoked: 'Forbidden',
        revoked_self: false,
      },
      signatures: { ecdsa: [true, false], rsa: [true, false], batch: [true, false] },
      derived: { equal: [true, false], opened: true, elsewhere: 'InvalidRequest', trimmed: 'InvalidRequest' },
      system: {
        prefix: 'vault:v1:',
        tuned: 7_200,
        listed: ['sys/', 'team/', 'transit/'],
        moved: ['orders'],
        rotated: 1,
        quota: 1_000,
        note: 'hello',
        twice: 'InvalidRequest',
        restored: 1,
        late: 'InvalidPath',
        audit: {},
      },
      logins: {
        policies: [
          ['default', 'writer'],
          ['default', 'writer'],
        ],
        metadata: ['ann', 'a'],
        lease: 600,
        uses: 1,
        spent: 'InvalidRequest',
        wrong: 'InvalidRequest',
        listed: [['ann'], ['shop']],
        ended: false,
        still: true,
      },
    });
  });

  it(`${version} logs in with the identities that workloads have`, async function () {
    this.timeout(600_000);
    const python = await pythonWith([`hvac==${version}`]);
    if (python === undefined) return this.skip();
    const { node, workload, close } = await startWorkloadNode(bench);
    const settings = JSON.stringify({ token: node.rootToken, ...workload });
    try {
      const { code, stdout, stderr } = await run(python, [loginScript, node.server.url], {
        env: { HVAC_SETTINGS: settings },
      });
      expect(code, stderr).to.equal(0);
      const policies = ['default', 'writer'];
      expect(JSON.parse(stdout)).to.deep.equal({
        kubernetes: { host: true, roles: ['web'], bound: ['web'], policies, account: 'web', unknown: 'Forbidden' },
        jwt: { issuer: 'https://cluster', roles: ['ci'], claim: 'sub', policies, role: 'ci', other: 'InvalidRequest' },
        cert: { roles: ['web'], policies, name: 'web', unknown: 'InvalidRequest' },
      });
    } finally {
      close();
    }
  });
});
