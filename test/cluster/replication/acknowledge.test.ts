// A primary with a standby and gateways uses key material only once its secondary has it.
import { expect } from 'chai';
import { freePort } from '../harness/free-port.ts';
import { LiveCluster } from '../harness/live-cluster.ts';
import type { LiveNode } from '../harness/live-node.ts';
import { scenarioMs } from '../harness/scenario.ts';
import { until } from '../harness/until.ts';

const dr = 'sys/replication/dr';
/** For confirmations that come, also on a machine that stalls, and for those that do not. */
const timeouts = { long: '30s', short: '1s' } as const;

describe('a primary whose secondary acknowledges key material', function () {
  this.timeout(scenarioMs);
  const clusters: LiveCluster[] = [];
  after(async () => {
    for (const cluster of clusters) await cluster.end();
  });

  it('uses no version on any node that the secondary lacks, and loses none that was used', async () => {
    const east = await LiveCluster.formed({ size: 2, links: 'direct', elections: 'never', workers: 1 });
    clusters.push(east);
    const address = `127.0.0.1:${await freePort('127.0.0.1')}`;
    const west = await LiveCluster.formed({ size: 1, config: { cluster_addr: address, cluster_listen: address } });
    clusters.push(west);
    const [active, target] = [await east.leader(), west.node(1)];
    const token = { token: east.rootToken };
    const explain = (): string => `${east.tails()}\n${west.tails()}`;
    const post = (node: LiveNode, path: string, body: object = {}) => node.ask('POST', path, { ...token, body });
    const done = async (path: string, body: object): Promise<void> => {
      const answer = await post(active, path, body);
      expect(answer.status, answer.text).to.be.lessThan(300);
    };
    /** Returns the version with which each node encrypts; both have a gateway. */
    const versionsUsed = () =>
      Promise.all(
        east.nodes.map(async (node) => {
          const answer = await post(node, 'transit/encrypt/k', { plaintext: 'eA==' });
          return Number(answer.at('data.key_version') ?? answer.status);
        }),
      );
    const use = (version: number) =>
      until(`every node encrypts with version ${version}`, async () => (await versionsUsed()).every((used) => used === version), {
        explain,
      });

    await done(`${dr}/primary/enable`, {});
    const wait = (timeout: string, more: object = {}) =>
      done(`${dr}/primary/acknowledge`, { acknowledge: 'key_material', timeout, ...more });
    await wait(timeouts.long);
    const activation = await until('the members are listed', async () => {
      const answer = await post(active, `${dr}/primary/secondary-token`, { id: 'west' });
      return answer.status === 200 && answer.string('data.token');
    });
    const enabled = await target.ask('POST', `${dr}/secondary/enable`, { token: west.rootToken, body: { token: activation } });
    expect(enabled.status, enabled.text).to.equal(204);
    // Only a secondary that has unsealed itself with the state, and has connected again, counts.
    await until(
      'the secondary follows with the state of the primary',
      async () => {
        const [own, other] = [await active.ask('GET', `${dr}/status`), await target.ask('GET', `${dr}/status`)];
        const isConnected = other.at('data.connection_status') === 'connected' && other.at('data.merkle_root') !== undefined;
        return isConnected && own.at('data.last_wal') === other.at('data.last_remote_wal') && other.at('data.lag_entries') === 0;
      },
      { explain },
    );
    await until('a key is made', async () => (await post(active, 'transit/keys/k')).status === 200, { explain });
    await done('transit/keys/k/rotate', {});
    expect(await versionsUsed()).to.deep.equal([2, 2]);

    await wait(timeouts.short);
    target.pause();
    const late = await post(active, 'transit/keys/k/rotate');
    expect(late.status, late.text).to.equal(504);
    expect(late.text).to.include('it will be used once they confirm it');
    expect(await versionsUsed(), 'stored, but not used').to.deep.equal([2, 2]);
    const shown = await post(active, 'transit/keys/new');
    expect(shown.status, shown.text).to.equal(504);
    for (const node of east.nodes)
      expect((await post(node, 'transit/encrypt/new', { plaintext: 'eA==' })).status, 'a new key cannot encrypt').to.equal(503);
    target.resume();
    await use(3);

    await target.kill();
    await until(
      'the primary has noticed that its secondary is gone',
      async () => (await active.ask('GET', `${dr}/status`)).at('data.secondaries.0.connection_status') === 'disconnected',
      { explain },
    );
    const refused = await post(active, 'transit/keys/k/rotate');
    expect(refused.status, refused.text).to.equal(503);
    expect(refused.text).to.include('the secondary west is not connected').and.include('nothing was done');
    expect(await versionsUsed()).to.deep.equal([3, 3]);
    await wait(timeouts.short, { on_timeout: 'degrade' });
    const degraded = await post(active, 'transit/keys/k/rotate');
    expect(degraded.status, degraded.text).to.equal(200);
    expect(String(degraded.at('warnings.0'))).to.include('a promotion may lose it');
    await use(4);

    await wait(timeouts.long);
    await target.start();
    await until('the key is rotated', async () => (await post(active, 'transit/keys/k/rotate')).status === 200, { explain });
    const answer = await post(active, 'transit/encrypt/k', { plaintext: 'eA==' });
    await Promise.all(east.nodes.map((node) => node.kill()));
    await until(
      'the secondary is promoted',
      async () => (await post(target, `${dr}/secondary/promote`, { force: true })).status === 200,
      {
        explain,
      },
    );
    const read = await until(
      'the promoted cluster serves',
      async () => {
        const decrypted = await post(target, 'transit/decrypt/k', { ciphertext: answer.string('data.ciphertext') });
        return decrypted.status === 200 && decrypted;
      },
      { explain },
    );
    expect(read.at('data.plaintext')).to.equal('eA==');
  });
});
