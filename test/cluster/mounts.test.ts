// Mounts can be changed through any node, and a change is in force on every node when it is acknowledged.
import { expect } from 'chai';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';

// Repeats a request that was refused because no active node answered: a loaded machine may be too slow for a connection to it.
const plaintext = Buffer.from('fox').toString('base64');

async function statuses(cluster: LiveCluster, path: string, body: object): Promise<number[]> {
  const answers = await Promise.all(cluster.nodes.map((node) => cluster.askWhenLed(node, 'POST', path, body)));
  return answers.map(({ status }) => status);
}

/** Returns the mounts from each node's own records. */
async function mountsOf(cluster: LiveCluster): Promise<string[][]> {
  const answers = await Promise.all(cluster.nodes.map((node) => cluster.askWhenLed(node, 'GET', 'sys/mounts')));
  return answers.map((answer) => Object.keys(Object(answer.at('data'))).toSorted());
}

describe('the mounts of a cluster', function () {
  this.timeout(scenarioMs);

  it('are the same on every node when a change is acknowledged, and after a change of leader', () =>
    withCluster({}, async (cluster) => {
      const leader = await cluster.settled();
      const [one = leader, other = leader] = cluster.others(leader);
      const change = async (through: LiveNode, ...[verb, path, body]: [string, string, object?]): Promise<void> => {
        const { status, text } = await cluster.askWhenLed(through, verb, path, body);
        expect(status, `${verb} ${path}: ${text}`).to.be.oneOf([200, 204]);
      };
      await change(one, 'POST', 'sys/mounts/team/a', { type: 'transit' });
      await change(other, 'POST', 'team/a/keys/k', {});
      expect(await statuses(cluster, 'team/a/encrypt/k', { plaintext })).to.deep.equal([200, 200, 200]);
      const ciphertext = (await cluster.askWhenLed(one, 'POST', 'team/a/encrypt/k', { plaintext })).string('data.ciphertext');

      await change(other, 'POST', 'sys/remount', { from: 'team/a', to: 'b' });
      expect(await mountsOf(cluster)).to.deep.equal(cluster.nodes.map(() => ['b/', 'sys/', 'transit/']));
      expect(await statuses(cluster, 'b/decrypt/k', { ciphertext })).to.deep.equal([200, 200, 200]);
      expect(await statuses(cluster, 'team/a/decrypt/k', { ciphertext })).to.deep.equal([404, 404, 404]);

      await change(one, 'POST', 'b/cache-config', { size: 10 });
      await change(one, 'PUT', 'sys/plugins/reload/backend', { plugin: 'transit', mounts: null, scope: '' });

      await leader.kill();
      await leader.start();
      const next = await cluster.settled();
      expect(await statuses(cluster, 'b/decrypt/k', { ciphertext })).to.deep.equal([200, 200, 200]);
      await change(cluster.others(next)[0] ?? next, 'DELETE', 'sys/mounts/b');
      expect(await mountsOf(cluster)).to.deep.equal(cluster.nodes.map(() => ['sys/', 'transit/']));
      expect(await statuses(cluster, 'b/decrypt/k', { ciphertext })).to.deep.equal([404, 404, 404]);
    }));
});
