// @live
// The command against a cluster: join, members, requests to a standby.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { expectCode, type Ran, run } from '../process/transitd-command.ts';
import { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs } from './harness/scenario.ts';
import { until } from './harness/until.ts';

describe('the command transitd, against a cluster', function () {
  this.timeout(scenarioMs);
  let cluster: LiveCluster;
  let home = '';
  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'transitd-home-'));
    cluster = await LiveCluster.start({ size: 2, seal: 'shamir', elections: 'never' });
    await cluster.initialize(cluster.node(1));
  });
  after(async () => {
    await cluster.end();
    rmSync(home, { recursive: true, force: true });
  });

  const transitd = (node: LiveNode | string, args: readonly string[], input = ''): Promise<Ran> => {
    const address = typeof node === 'string' ? node : node.apiAddress;
    return run(args, { env: { HOME: home, TRANSITD_ADDR: address, TRANSITD_TOKEN: cluster.rootToken }, input });
  };

  it('joins a node, lists the members, and works through any of them', async () => {
    const [first, second] = [cluster.node(1), cluster.node(2)];
    expectCode(await transitd(second, ['operator', 'raft', 'join', first.apiAddress]), 2, 'the shares come first');
    for (const share of cluster.shares) expectCode(await transitd(second, ['operator', 'unseal', '-'], share), 0);
    await second.reaches(473);
    await cluster.settled();
    for (const node of [first, second]) {
      const peers = expectCode(await transitd(node, ['operator', 'raft', 'list-peers', '-format=json']), 0).json<{
        config: { servers: { node_id: string; leader: boolean; voter: boolean }[] };
      }>();
      expect(peers.config.servers.map(({ node_id, voter }) => `${node_id} ${voter}`)).to.have.members(['n1 true', 'n2 true']);
    }
    const members = expectCode(await transitd(second, ['operator', 'members']), 0);
    expect(members.stdout).to.include(first.apiAddress).and.include(second.apiAddress);
    await until('all are healthy', async () => {
      const state = await transitd(second, ['operator', 'raft', 'autopilot', 'state', '-format=json']);
      return state.code === 0 && state.json()['healthy'] === true;
    });
    expectCode(await transitd(second, ['operator', 'raft', 'autopilot', 'set-config', '-max-trailing-logs=500']), 0);
    const settings = await transitd(first, ['operator', 'raft', 'autopilot', 'get-config', '-field=max_trailing_logs']);
    expect(expectCode(settings, 0).stdout).to.equal('500');
    expectCode(await transitd(second, ['key', 'create', 'through-a-standby']), 0);
    expectCode(await transitd(second, ['status']), 0);
    expect(expectCode(await transitd(second, ['doctor']), 0).stdout).to.match(/^ok +state +performance standby$/m);
  });

  it('generates a root token through a standby', async () => {
    const second = cluster.node(2);
    const begun = await transitd(second, ['operator', 'generate-root', '-init', '-format=json']);
    const { nonce, otp } = expectCode(begun, 0).json<{ nonce: string; otp: string }>();
    let last: Ran | undefined;
    for (const share of cluster.shares)
      last = expectCode(await transitd(second, ['operator', 'generate-root', '-format=json', '-nonce', nonce, '-'], share), 0);
    const { encoded_token: encoded } = last?.json<{ encoded_token: string }>() ?? { encoded_token: '' };
    const { stdout: token } = expectCode(
      await transitd(second, ['operator', 'generate-root', '-decode', encoded, '-otp=-'], otp),
      0,
    );
    const looked = await second.ask('GET', 'auth/token/lookup-self', { token });
    expect([looked.status, looked.at('data.policies.0')]).to.deep.equal([200, 'root']);
  });

  it('tries the next address if a node is sealed or down', async () => {
    const [first, second] = [cluster.node(1), cluster.node(2)];
    const both = `${second.apiAddress},${first.apiAddress}`;
    expectCode(await transitd(second, ['operator', 'seal']), 0);
    expectCode(await transitd(second, ['key', 'list']), 2);
    expectCode(await transitd(both, ['key', 'list']), 0);
    expectCode(await transitd(both, ['status']), 2, 'commands about one node use only the first address');
    expect(expectCode(await transitd(second, ['doctor']), 1).stdout).to.match(/^fail +state +it is sealed/m);
    expectCode(await transitd(first, ['operator', 'raft', 'remove-peer', 'n2']), 0);
    await second.reaches(530);
    expect(expectCode(await transitd(second, ['doctor']), 1).stdout).to.match(/^fail +state +it was removed/m);
    await second.kill();
    expectCode(await transitd(second, ['key', 'list']), 1);
    expectCode(await transitd(both, ['key', 'list']), 0);
  });
});
