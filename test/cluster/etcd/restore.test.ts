import { expect } from 'chai';
import { LiveCluster } from '../harness/live-cluster.ts';
import type { LiveNode } from '../harness/live-node.ts';
import { scenarioMs } from '../harness/scenario.ts';
import { until } from '../harness/until.ts';

const indexHeader = 'X-Service-Index';

describe('a restore of etcd', function () {
  this.timeout(scenarioMs);
  let cluster: LiveCluster;
  let restore: () => void;
  before(async () => {
    cluster = await LiveCluster.formed({ storage: 'etcd' });
    await create('kept');
    for (const node of cluster.nodes) await node.stop();
    await cluster.etcd.killAll();
    restore = cluster.etcd.backup();
    await cluster.etcd.startAll();
    for (const node of cluster.nodes) await node.start();
    await cluster.settled();
  });
  after(() => cluster?.end());

  /** Creates a key; returns the index of that. */
  const create = async (key: string): Promise<string> => {
    const created = await cluster.askWhenLed(cluster.node(2), 'POST', `transit/keys/${key}`);
    expect(created.status, created.text).to.equal(200);
    return created.headers.get(indexHeader) ?? '';
  };
  const statusOf = async (node: LiveNode, key: string): Promise<number> =>
    (await cluster.askWhenLed(node, 'GET', `transit/keys/${key}`)).status;

  it('is noticed by nodes that run: they forget the lost records, and go on together', async () => {
    await create('lost-while-running');
    await cluster.etcd.killAll();
    restore();
    await cluster.etcd.startAll();
    for (const node of cluster.nodes)
      await until(`${node.name} knows of the restore`, async () => (await statusOf(node, 'lost-while-running')) === 404, {
        explain: () => cluster.tails(),
      });
    await cluster.settled();
    await create('after-the-first');
    for (const node of cluster.nodes) {
      expect(await statusOf(node, 'kept'), node.name).to.equal(200);
      await until(`${node.name} has the new key`, async () => (await statusOf(node, 'after-the-first')) === 200);
    }
  });

  it('gives the cluster another id when an operator follows the page, so that clients drop their index', async () => {
    const index = await create('lost');
    for (const node of cluster.nodes) await node.stop();
    await cluster.etcd.killAll();
    restore();
    await cluster.etcd.startAll();
    await cluster.etcd.forgetClusterId();
    for (const node of cluster.nodes) await node.start();
    await cluster.settled();
    for (const node of cluster.nodes) {
      expect(await statusOf(node, 'kept'), node.name).to.equal(200);
      expect(await statusOf(node, 'lost'), node.name).to.equal(404);
      const { status } = await cluster.ask(node, 'GET', 'transit/keys/kept', undefined, { headers: { [indexHeader]: index } });
      expect(status, node.name).to.equal(400);
    }
  });
});
