// A cluster forms from nodes with empty disks, and serves again after all nodes were stopped.
import { expect } from 'chai';
import { expectHealthBody } from './harness/health-body.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster, withNodes } from './harness/scenario.ts';
import { expectNothingLost } from './harness/survivors.ts';
import { Workload } from './harness/workload.ts';

const codes = (nodes: readonly LiveNode[]) => Promise.all(nodes.map(async (node) => (await node.health())?.code));

describe('a cluster forms', function () {
  this.timeout(scenarioMs);

  for (const seal of ['static', 'shamir'] as const) {
    it(`with a ${seal} seal: 501 everywhere, 200 after init, 473 after join`, () =>
      withNodes({ seal, elections: 'never' }, async (cluster) => {
        const [a, b, c] = [cluster.node(1), cluster.node(2), cluster.node(3)];
        expect(await codes(cluster.nodes)).to.deep.equal([501, 501, 501]);
        await cluster.initialize(a);
        expect(await codes([b, c])).to.deep.equal([501, 501]);
        await cluster.join(b, a);
        await cluster.join(c, b); // any member passes a join on to the active node
        expect(await cluster.settled()).to.equal(a);
        expect(await cluster.voters(a)).to.have.members(['n1', 'n2', 'n3']);
        const ids = await Promise.all(cluster.nodes.map(async (node) => (await node.health())?.body['cluster_id']));
        expect(new Set(ids).size, 'cluster ids').to.equal(1);
      }));
  }

  it('with a shamir seal: a joining node stays sealed or empty until it gets its shares, and serves nothing', () =>
    withNodes({ seal: 'shamir', size: 2, elections: 'never' }, async (cluster) => {
      const [a, b] = [cluster.node(1), cluster.node(2)];
      await cluster.initialize(a);
      await cluster.admit(b, a);
      expect(await codes([b]), 'not before its shares').to.satisfy(([code]: number[]) => code === 503 || code === 501);
      expect((await cluster.ask(b, 'GET', 'transit/keys/any')).status).to.equal(503);
      await cluster.unseal(b);
      await b.reaches(473);
    }));

  it('by itself if retry_join names a node that is initialized later', () =>
    withNodes({ retryJoin: true, elections: 'never' }, async (cluster) => {
      expect(await codes(cluster.nodes)).to.deep.equal([501, 501, 501]);
      await cluster.initialize(cluster.node(1));
      expect(await cluster.settled()).to.equal(cluster.node(1));
    }));

  it('without a node whose seal has another key', () =>
    withNodes({ size: 2, strangersSeal: true, elections: 'never' }, async (cluster) => {
      const [a, b] = [cluster.node(1), cluster.node(2)];
      await cluster.initialize(a);
      const answer = await cluster.joinAnswer(b, a);
      expect(answer.status, answer.text).to.be.within(400, 503);
      expect(answer.text).to.match(/"errors":\["[^"]+/);
      expect(await codes([a, b])).to.deep.equal([200, 501]);
      expect(await cluster.voters(a)).to.deep.equal(['n1']);
    }));

  it('and refuses a second init and a second join without effect', () =>
    withCluster({ size: 2, elections: 'never' }, async (cluster) => {
      const [a, b] = [cluster.node(1), cluster.node(2)];
      const init = await b.ask('PUT', 'sys/init', { body: { recovery_shares: 1, recovery_threshold: 1 } });
      expect(init.status, init.text).to.equal(400);
      const again = await cluster.joinAnswer(b, a);
      expect(again.status, again.text).to.be.oneOf([200, 400]);
      expect(await cluster.settled()).to.equal(a);
      expect(await cluster.voters(a)).to.have.members(['n1', 'n2']);
    }));
});

describe('a cluster restarts after a stop of all nodes', function () {
  this.timeout(scenarioMs);

  it('with every acknowledged write, by itself, if its seal is static', () =>
    withCluster({}, async (cluster) => {
      const workload = await Workload.start(cluster, { clients: 4 });
      await workload.nextWrite(cluster.nodes);
      await Promise.all(cluster.nodes.map((node) => node.kill()));
      await Promise.all(cluster.nodes.map((node) => node.start()));
      await cluster.settled();
      await workload.nextWrite(cluster.nodes);
      await workload.stop();
      await expectNothingLost(cluster, workload);
    }));

  it('sealed with shamir: sealed nodes keep the quorum, and the first unsealed node becomes active', () =>
    withCluster({ seal: 'shamir' }, async (cluster) => {
      const key = await cluster.askWhenLed(cluster.node(1), 'POST', 'transit/keys/kept', {});
      expect(key.status, key.text).to.equal(200);
      await Promise.all(cluster.nodes.map((node) => node.stop()));
      await Promise.all(cluster.nodes.map((node) => node.start()));
      for (const node of cluster.nodes) {
        expectHealthBody(await node.reaches(503));
        expect((await cluster.ask(node, 'GET', 'transit/keys/kept')).status).to.equal(503);
      }
      const second = cluster.node(2);
      await cluster.unseal(second);
      await second.reaches(200);
      expect((await cluster.askWhenLed(second, 'GET', 'transit/keys/kept')).status).to.equal(200);
      expect((await cluster.askWhenLed(second, 'POST', 'transit/keys/kept/rotate', {})).status).to.equal(200);
      expect(await codes([cluster.node(1), cluster.node(3)])).to.deep.equal([503, 503]);
      for (const node of cluster.others(second)) await cluster.unseal(node);
      expect(await cluster.settled()).to.equal(second);
    }));
});
