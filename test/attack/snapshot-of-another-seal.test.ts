// @live
// `snapshot-force` with another cluster's snapshot on a cluster with a static seal, whose key cannot open the snapshot.
import { expect } from 'chai';
import { LiveCluster } from '../cluster/harness/live-cluster.ts';
import type { LiveNode } from '../cluster/harness/live-node.ts';
import { processMs } from '../process/live-server.ts';

const path = 'sys/storage/raft/snapshot';

async function take(cluster: LiveCluster, node: LiveNode): Promise<Buffer> {
  const response = await fetch(`${node.apiAddress}/v1/${path}`, { headers: { 'X-Service-Token': cluster.rootToken } });
  expect(response.status).to.equal(200);
  return Buffer.from(await response.arrayBuffer());
}

describe("a snapshot that the cluster's seal cannot open", function () {
  this.timeout(processMs);
  let cluster: LiveCluster | undefined;
  afterEach(() => cluster?.end());

  for (const seal of ['static', 'shamir'] as const)
    it(`(${seal}) is refused by snapshot-force, and the cluster keeps serving`, async () => {
      const other = await LiveCluster.formed({ size: 1, seal });
      const snapshot = await take(other, other.node(1)).finally(() => other.end());
      cluster = await LiveCluster.formed({ size: 1 });
      const node = cluster.node(1);
      await cluster.ask(node, 'POST', 'transit/keys/own', {});
      const response = await fetch(`${node.apiAddress}/v1/${path}-force`, {
        method: 'POST',
        headers: { 'X-Service-Token': cluster.rootToken },
        body: new Uint8Array(snapshot),
      });
      const text = await response.text();
      expect(response.status, text).to.equal(400);
      expect(text).to.contain('the seal of this node cannot open this snapshot, and nothing was changed');
      expect((await cluster.ask(node, 'GET', 'transit/keys/own')).status).to.equal(200);
      await node.restart();
      await node.reaches(200);
      expect((await cluster.ask(node, 'GET', 'transit/keys/own')).status).to.equal(200);
    });
});
