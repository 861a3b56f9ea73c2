// @live
// The uses of keys are counted on every thread of every node, and each counts once, whoever is active.
import { expect } from 'chai';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, sharedCluster, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

const plaintext = Buffer.from('hello').toString('base64');

interface Usage {
  readonly counting_since?: string;
  readonly versions: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly unanswered_nodes: readonly string[];
}

async function usageOf(cluster: LiveCluster, through: LiveNode, key: string): Promise<Usage> {
  const answer = await cluster.askUntilKnown(through, 'GET', `transit/keys/${key}/usage`);
  expect(answer.status, answer.text).to.equal(200);
  return answer.at('data') as Usage;
}

/** Returns the uses once all threads of all nodes have answered: a busy one may be late. */
const wholeUsageOf = (cluster: LiveCluster, through: LiveNode, key: string): Promise<Usage> =>
  until('all threads of all nodes answer', async () => {
    const usage = await usageOf(cluster, through, key);
    return usage.unanswered_nodes.length === 0 && usage;
  });

/** Encrypts `times` times through each node, each time on a connection of its own, so that all threads answer some. */
async function encryptOnAll(cluster: LiveCluster, key: string, times: number): Promise<void> {
  for (const node of cluster.nodes)
    for (let i = 0; i < times; i++) {
      const headers = { Connection: 'close' };
      const answer = await cluster.ask(node, 'POST', `transit/encrypt/${key}`, { plaintext }, { headers });
      expect(answer.status, answer.text).to.equal(200);
    }
}

const encryptions = ({ versions }: Usage, version = 1): number => versions[version]?.['encryptions'] ?? 0;

const counts = (cluster: LiveCluster): Promise<unknown> =>
  until('all nodes count', async () => (await usageOf(cluster, cluster.node(1), 'orders')).counting_since !== undefined);

/** Returns since when uses are counted, once that is recorded: until then, each answer says that counting begins now. */
const countedSince = (cluster: LiveCluster, through: LiveNode): Promise<string> =>
  until('the beginning is recorded', async () => {
    const [one, other] = [await usageOf(cluster, through, 'orders'), await usageOf(cluster, through, 'orders')];
    return one.counting_since === other.counting_since && one.counting_since;
  });

describe('the uses of keys in a cluster', function () {
  this.timeout(scenarioMs);

  for (const storage of ['raft', 'etcd'] as const)
    it(`are counted on all threads of all nodes on ${storage}, and stay after a step-down and a restart of each node`, () =>
      withCluster({ elections: 'rare', workers: 1, storage }, async (cluster) => {
        const leader = await cluster.settled();
        for (const { server } of cluster.nodes) await server.log(/"msg":"a gateway thread listens"/);
        const standby = cluster.others(leader)[0] ?? leader;
        await cluster.askUntilKnown(leader, 'POST', 'transit/keys/orders', {});
        await counts(cluster);
        await encryptOnAll(cluster, 'orders', 8);
        // A batch whose gateway passes it on, because an item fails, counts once.
        const batch = { batch_input: [{ plaintext }, { plaintext: '!' }] };
        for (const node of cluster.nodes) await cluster.ask(node, 'POST', 'transit/encrypt/orders', batch);
        const since = await countedSince(cluster, leader);
        const total = 3 * 8 + 3;
        for (const node of cluster.nodes)
          expect(encryptions(await wholeUsageOf(cluster, node, 'orders')), node.name).to.equal(total);

        expect((await cluster.askUntilKnown(leader, 'PUT', 'sys/step-down')).status).to.equal(204);
        await cluster.leader(cluster.others(leader));
        await cluster.settled();
        expect(encryptions(await wholeUsageOf(cluster, leader, 'orders')), 'after a step-down').to.equal(total);

        for (const node of cluster.nodes) {
          await node.stop();
          await cluster.leader(cluster.others(node));
          await node.start();
          await cluster.settled();
        }
        await counts(cluster);
        const usage = await wholeUsageOf(cluster, standby, 'orders');
        expect(encryptions(usage), 'after restarts').to.equal(total);
        expect(usage.counting_since, 'all nodes have handed over their uses').to.equal(since);
      }));

  const onShared = sharedCluster({ workers: 1 });

  it('of a node that is down are missing as evidence: nothing is taken away until it answers', () =>
    onShared(async (cluster) => {
      const leader = await cluster.settled();
      const [through = leader, down = leader] = cluster.others(leader);
      await cluster.ask(leader, 'POST', 'transit/keys/orders', {});
      await counts(cluster);
      await encryptOnAll(cluster, 'orders', 1);
      await cluster.ask(leader, 'POST', 'transit/keys/orders/rotate');
      await cluster.ask(leader, 'POST', 'transit/keys/orders/config', { min_encryption_version: 2 });
      const raise = async (within: string) => {
        const body = { min_decryption_version: 2, unless_used_within: within };
        return cluster.askUntilKnown(through, 'POST', 'transit/keys/orders/config', body);
      };
      const refused = await raise('1h');
      expect(refused.text).to.match(/used within that time: version 1 \(3 encryptions; last at /);
      expect(refused.status).to.equal(400);
      const since = await countedSince(cluster, through);
      await down.kill();
      const why = await until('the uses are long ago', async () => {
        const { text } = await raise('1s');
        return !text.includes('used within that time') && text;
      });
      expect(why).to.include(`${down.name} did not answer`).and.include('nothing was changed');
      await down.start();
      await cluster.settled();
      const raised = await until('all nodes answer', async () => {
        const answer = await raise('1s');
        return answer.status === 200 && answer;
      });
      expect(raised.at('data.min_decryption_version')).to.equal(2);
      expect(Date.parse(await countedSince(cluster, through)), 'the uses of its last minute are lost').to.be.above(
        Date.parse(since),
      );
    }));

  it('are shown without those of a node that is down, which is named', () =>
    onShared(async (cluster) => {
      const leader = await cluster.settled();
      await cluster.ask(leader, 'POST', 'transit/keys/orders', {});
      await counts(cluster);
      await encryptOnAll(cluster, 'orders', 1);
      const [down = leader] = cluster.others(leader);
      await down.kill();
      // A node that answers late is named too.
      await until('only the node that is down is named', async () => {
        const { unanswered_nodes: unanswered } = await usageOf(cluster, leader, 'orders');
        return String(unanswered) === down.name;
      });
      await down.start();
    }));
});
