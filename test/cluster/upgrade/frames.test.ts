// @live
// Nodes with two versions of the Raft frames in one cluster: the active node asks a standby of an earlier release by a call.
import { expect } from 'chai';
import type { LiveCluster } from '../harness/live-cluster.ts';
import type { LiveNode } from '../harness/live-node.ts';
import { scenarioMs, withCluster } from '../harness/scenario.ts';
import { Releases } from './harness/next-release.ts';

const rounds = 10;
/** Without a confirmation, a rotation waits until the standbys may no longer serve: longer than a heartbeat interval. */
const withoutConfirmationMs = 1000;

/** Rotates through each node. Each rotation is in force on all nodes when it is answered; the fastest waited for confirmations alone. */
async function rotateThroughAll(cluster: LiveCluster, key: string): Promise<void> {
  for (const through of cluster.nodes) {
    const durations: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const startMs = performance.now();
      const rotated = await cluster.askServing(through, 'POST', `transit/keys/${key}/rotate`, {});
      durations.push(performance.now() - startMs);
      expect(rotated.status, rotated.text).to.equal(200);
      const newest = rotated.at('data.latest_version');
      for (const node of cluster.nodes) {
        const encrypted = await cluster.askServing(node, 'POST', `transit/encrypt/${key}`, { plaintext: 'AAAA' });
        expect(encrypted.at('data.key_version'), `${node.name}, rotated through ${through.name}`).to.equal(newest);
      }
    }
    expect(Math.min(...durations), `through ${through.name}`).to.be.below(withoutConfirmationMs);
  }
}

async function restart(cluster: LiveCluster, node: LiveNode, program?: string): Promise<LiveNode> {
  expect((await node.stop()).code).to.equal(0);
  node.install(program);
  await node.start();
  return cluster.settled();
}

describe('a rotation, with nodes of two versions of the Raft frames', function () {
  this.timeout(scenarioMs);
  const releases = new Releases();
  after(() => releases.remove());

  it('is in force on all nodes when it is answered, whichever version the active node has', () =>
    withCluster({ elections: 'shipped' }, async (cluster) => {
      const earlier = await releases.earlier();
      const leader = await cluster.settled();
      const created = await cluster.askServing(leader, 'POST', 'transit/keys/k', {});
      expect(created.status, created.text).to.be.oneOf([200, 204]);
      await rotateThroughAll(cluster, 'k');

      const [one, two] = cluster.others(leader);
      if (one === undefined || two === undefined) throw new Error('three nodes');
      expect(await restart(cluster, one, earlier)).to.equal(leader);
      await rotateThroughAll(cluster, 'k');

      expect(await restart(cluster, two, earlier)).to.equal(leader);
      expect(await restart(cluster, leader)).to.be.oneOf([one, two]);
      await rotateThroughAll(cluster, 'k');
    }));
});
