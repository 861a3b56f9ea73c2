// A cluster under load migrates from seal to seal, node by node; during each migration, the active node is killed. Then the provider of the
// seal becomes unavailable, and its key gets a new version. The command blocks of docs/seals.md set up the provider and the nodes.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';
import { LinkProxy } from './harness/link-proxy.ts';
import { LiveCluster } from './harness/live-cluster.ts';
import { remove } from './harness/removal.ts';
import { scenarioMs } from './harness/scenario.ts';
import { type ChainSeals, chainSeals, type Seal } from './harness/seal-chain.ts';
import { migrate, statusOf } from './harness/seal-moves.ts';
import { blockOf } from './harness/seals-page.ts';
import { expectNothingLost } from './harness/survivors.ts';
import { until } from './harness/until.ts';
import { Workload } from './harness/workload.ts';

const clientToken = z.object({ auth: z.object({ client_token: z.string() }) });
/** With `SEAL_MIGRATION=chain`, it migrates through every type of seal that this machine supports, and back to shares. */
const isLong = process.env['SEAL_MIGRATION'] === 'chain';

describe('a cluster that moves to a transit seal', function () {
  this.timeout((isLong ? 6 : 2) * scenarioMs);
  this.bail(true); // each test continues with the cluster of the previous test
  const folder = mkdtempSync(join(tmpdir(), 'transitd-seal-'));
  let provider: LiveCluster;
  /** Proxy between the nodes and the provider. */
  let link: LinkProxy;
  let cluster: LiveCluster;
  let transit: Seal;
  let seals: ChainSeals | undefined;
  const atProvider = (path: string, body: object = {}) => provider.ask(provider.node(1), 'POST', path, body);

  before(async () => {
    provider = await LiveCluster.formed({ size: 1 });
    const { apiAddress } = provider.node(1);
    const { hostname: host, port } = new URL(apiAddress);
    link = await LinkProxy.listen({ host, port: Number(port) }, ['127.0.0.1']);
    const address = `http://${link.address.host}:${link.address.port}`;
    const env = { ...process.env, PROVIDER: apiAddress, PROVIDER_TOKEN: provider.rootToken };
    const { stdout } = await promisify(execFile)('sh', ['-ec', blockOf('sh', 'transit')], { env });
    const created: unknown = JSON.parse(stdout.slice(stdout.lastIndexOf('\n{') + 1));
    const token_file = join(folder, 'token');
    writeFileSync(token_file, clientToken.parse(created).auth.client_token, { mode: 0o400 });
    const { seal } = parse(blockOf('yaml', 'transit')) as { seal: Seal };
    transit = { ...seal, address, token_file, tls: {} };
    seals = isLong ? await chainSeals(folder) : undefined;
    const config = { raft: { election_timeout: '2s' }, ...(seals && { pkcs11_libraries: seals.libraries }) };
    cluster = await LiveCluster.formed({ seal: 'shamir', config, ...(seals && { env: () => seals?.env ?? {} }) });
  });
  after(async () => {
    await cluster?.end();
    await link?.close();
    await provider?.end();
    await seals?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('loses no acknowledged write, although the active node is killed at the last share', async () => {
    const example = parse(blockOf('yaml', 'Migration')) as { seal: Seal; migrate_seal_from: Seal };
    expect(example.seal.type).to.equal('transit');
    const workload = await Workload.start(cluster, { clients: isLong ? 3 : 2, settings: 4, counters: 2, seed: 21 });
    let present: Seal = example.migrate_seal_from;
    for (const next of [transit, ...(seals?.chain ?? []), ...(isLong ? [{ type: 'shamir' }, transit] : [])]) {
      await migrate(cluster, present, next);
      present = next;
    }
    await workload.stop();
    await expectNothingLost(cluster, workload);
    expect(workload.acknowledged).to.be.greaterThan(20);
  });

  it('serves without its provider; a node that starts meanwhile stores, says why it is sealed, and unseals later', async () => {
    const leader = await cluster.settled();
    const [second = leader, third = leader] = cluster.others(leader);
    await atProvider('seal/keys/unseal/rotate'); // the third node finds the new version when it starts
    link.setMode('127.0.0.1', 'cut');
    third.configure({ migrate_seal_from: undefined });
    await third.restart();
    await until('the restarted node names the failure', async () => {
      const health = await third.health();
      return health?.code === 503 && health.body['seal_failure'] === 'unreachable';
    });
    const status = await third.ask('GET', 'sys/seal-backend-status');
    expect([status.at('healthy'), status.at('backends.0.failure')]).to.deep.equal([false, 'unreachable']);
    expect(third.log).to.match(/could not unseal itself with its transit seal/);
    second.pause(); // from now on, each commit needs the sealed node
    expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/without-provider')).status).to.be.oneOf([200, 204]);
    link.setMode('127.0.0.1', 'open');
    await third.reaches(473);
    expect((await third.ask('GET', 'sys/seal-backend-status')).at('healthy')).to.equal(true);
    // The leader may choose the frozen node until it has not heard it for an election timeout; then it stays the leader.
    await until(`${third.name} is active`, async () => {
      if ((await leader.health())?.code === 200) await cluster.ask(leader, 'POST', 'sys/step-down');
      return (await third.health())?.code === 200;
    });
    second.resume();
    await cluster.settled();
    for (const node of cluster.nodes)
      expect((await cluster.askWhenLed(node, 'GET', 'transit/keys/without-provider')).status).to.equal(200);
  });

  it('is rewrapped under a new version of the key; with the old one disabled, a new node joins and unseals by itself', async () => {
    const rewrapped = (): boolean =>
      cluster.nodes.some(({ log }) => log.includes('wrapped the root key under the present seal key'));
    await until('the root key is wrapped under version 2', rewrapped, { explain: () => cluster.tails() });
    await atProvider('seal/keys/unseal/config', { min_decryption_version: 2 });
    const leader = await cluster.settled();
    const [lost = leader] = cluster.others(leader);
    await remove(cluster, lost, { through: leader });
    lost.configure({ migrate_seal_from: undefined });
    await lost.replace();
    await cluster.join(lost, leader);
    await cluster.settled();
    expect((await statusOf(lost)).at('type')).to.equal('transit');
    for (const { log } of cluster.nodes) {
      const failed = log.split('\n').filter((line) => /could not be renewed|cannot be renewed/.test(line));
      // A renewal may have been due while the link was cut.
      expect(failed.filter((line) => !line.includes('does not answer'))).to.deep.equal([]);
    }
  });
});
