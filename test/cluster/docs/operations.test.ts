// @live
// The commands of the pages about operation, as they are written, on two machines: the example configuration, initialization, audit, a
// second node, backup and restore, and a recovery after a lost quorum.
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { codeBlocks, shellBlocks } from '../../docs/page.ts';
import { processMs } from '../../process/live-server.ts';
import { Machines } from './machines.ts';

const nodes = 'docs/node-operations.md';
const clusters = 'docs/cluster-operations.md';
const [audit, monitoring] = ['docs/audit.md', 'docs/monitoring.md'];
const main = '/etc/transitd/transitd.yaml';

/** The n-th `sh` block of a page, or of one of its sections. */
const block = (page: string, at = 0, heading?: string): string => {
  const found = shellBlocks(page, heading)[at];
  if (found === undefined) throw new Error(`${page} has no block ${at} below ${heading}`);
  return found;
};

/** The example configuration of the pages, for a node on addresses of its own: all machines have one network. */
function configuration(node: 'n1' | 'n2'): string {
  const yaml = [
    codeBlocks(nodes, 'yaml', 'Start'),
    codeBlocks(monitoring, 'yaml', 'Traces'),
    codeBlocks(audit, 'yaml', 'Configuration'),
  ];
  const texts = [...yaml.flat(), ...codeBlocks(clusters, 'yaml')];
  const { telemetry, retry_join, retry_join_ca_file, ...all } = Object.assign({}, ...texts.map((text) => parse(text)));
  // The second node joins by a command, which `retry_join` would overrule.
  const own = stringify(node === 'n1' ? { ...all, telemetry, retry_join, retry_join_ca_file } : all);
  return own.replaceAll(/\b0\.0\.0\.0/g, `${node}.example`).replaceAll(/(node_id: |_addr: (https:\/\/)?)n1/g, `$1${node}`);
}

describe('the pages about running a node and a cluster, backups, metrics and audit', function () {
  this.timeout(processMs);
  let machines: Machines;
  before(async () => {
    machines = await Machines.start(['n1.example', 'n2.example']);
    await play('admin', block('docs/production.md', 0, '1. Certificates'));
  });
  after(() => machines.end());

  async function play(machine: string, script: string): Promise<string> {
    const { code, stdout, stderr } = await machines.run(machine, script);
    expect(code, `on ${machine}: ${script}\n${stdout}${stderr}${machines.logs()}`).to.equal(0);
    return stdout;
  }
  const file = (machine: string, path: string): string => machines.path(machine, path);

  /** Runs the block that starts a node in the background, until it answers. */
  const begin = (node: string): Promise<string> =>
    play(
      node,
      `${block(nodes, 0, 'Start').trim()} >> /var/log/transitd.out 2>&1 < /dev/null & echo $! > /var/lib/transitd.pid
      export TRANSITD_ADDR=https://${node}.example:8200 TRANSITD_CACERT=/etc/transitd/ca.pem
      curl -s --retry 200 --retry-delay 1 --retry-connrefused --cacert $TRANSITD_CACERT $TRANSITD_ADDR/v1/sys/health`,
    );
  const end = (node: string): Promise<string> =>
    play(node, 'kill $(cat /var/lib/transitd.pid); while [ -e /proc/$(cat /var/lib/transitd.pid) ]; do sleep 0.1; done');
  /** Initializes a node as the page does, and stores each share in a file. */
  async function initialize(node: string): Promise<void> {
    await play(node, block(nodes, 0, 'Initialize and unseal'));
    const made = JSON.parse(readFileSync(file(node, '/root/init.json'), 'utf8'));
    for (const [at, share] of made.unseal_keys_b64.entries()) writeFileSync(file(node, `/root/share-${at + 1}`), share);
    await play(node, block(nodes, 1, 'Initialize and unseal'));
    await play(node, `export TRANSITD_TOKEN=${made.root_token}; until transitd policy list; do sleep 0.1; done`);
  }

  for (const node of ['n1', 'n2'] as const)
    it(`starts ${node} with the example configuration`, async () => {
      machines.copy('admin', node, ['/root/ca.pem'], '/etc/transitd');
      machines.copy('admin', node, ['/root/ca.pem', `/root/${node}.pem`, `/root/${node}.key`], '/root');
      const names = { 'ca.pem': 'collector-ca.pem', [`${node}.pem`]: 'tls.crt', [`${node}.key`]: 'tls.key' };
      for (const [from, to] of Object.entries(names)) cpSync(file(node, `/root/${from}`), file(node, `/etc/transitd/${to}`));
      writeFileSync(file(node, '/etc/transitd/jwks.json'), '{"keys":[]}');
      writeFileSync(file(node, main), configuration(node));
      expect(await begin(node)).to.include('"initialized":false');
    });

  it('initializes and unseals, and answers what the runbook and the page about upgrades ask', async () => {
    await initialize('n1');
    expect(await play('n1', block(monitoring, 0, 'Metrics')))
      .to.include('svc_core_unsealed')
      .and.to.include('# EOF');
    expect(await play('n1', block('docs/runbook.md'))).to.match(/failure.tolerance/i);
    await play('n1', shellBlocks('docs/upgrades.md').join(''));
  });

  it('hashes a string, and verifies audit files that were rotated', async () => {
    expect(await play('n1', `SUSPECT='a value'\n${block(audit, 0, 'Redaction')}`)).to.include('hmac-sha256:');
    const log = file('n1', '/var/log/transitd/audit.log');
    for (const older of ['audit.log.2', 'audit.log.1']) {
      renameSync(log, log.replace('audit.log', older));
      await play(
        'n1',
        'kill -HUP $(cat /var/lib/transitd.pid); until transitd policy list && [ -s /var/log/transitd/audit.log ]; do sleep 0.1; done',
      );
    }
    await play('n1', `(${block(audit, 0, 'Hash chain')})`);
  });

  it('lets a second node join', async () => {
    await play('n2', block(clusters, 0, 'Join'));
    machines.copy('n1', 'n2', ['/root/share-1', '/root/share-2', '/root/share-3'], '/root');
    await play('n2', block(nodes, 1, 'Initialize and unseal'));
    await play(
      'n1',
      `until transitd operator raft list-peers --format json | tr -d ' \\n' | grep -o '"voter":true' | wc -l | grep -q 2; do sleep 0.2; done`,
    );
  });

  it('backs up and restores', async () => {
    await play('n1', 'transitd key create before');
    expect(await play('n1', block(nodes, 0, 'Back up'))).to.include('state.bin');
    await play('n1', 'transitd key create after');
    await play('n1', block(nodes, 0, 'Restore'));
    const names = await play('n1', 'transitd key list');
    expect(names)
      .to.match(/^before$/m)
      .and.not.match(/^after$/m);
  });

  it('recovers the records of a disk into a new cluster', async () => {
    await end('n2');
    await end('n1');
    await play('n1', block(clusters, 0, 'Lost quorum'));
    rmSync(file('n2', '/var/lib/transitd'), { recursive: true });
    mkdirSync(file('n2', '/root/old'), { recursive: true });
    for (const share of ['share-1', 'share-2', 'share-3'])
      renameSync(file('n2', `/root/${share}`), file('n2', `/root/old/${share}`));
    machines.copy('n1', 'n2', ['/root/recovered.snap'], '/root');
    await begin('n2');
    await initialize('n2');
    await play('n2', block(clusters, 1, 'Lost quorum'));
    await play('n2', `cd old; ${block(nodes, 1, 'Initialize and unseal')}`);
    machines.copy('n1', 'n2', ['/root/init.json'], '/root/old');
    const { root_token } = JSON.parse(readFileSync(file('n1', '/root/init.json'), 'utf8'));
    expect(await play('n2', `export TRANSITD_TOKEN=${root_token}; until transitd key list; do sleep 0.2; done`)).to.match(
      /^before$/m,
    );
  });
});
