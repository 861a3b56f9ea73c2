// @live
// Every health code that a cluster can have, produced by a real cluster, with its whole body.
import { expect } from 'chai';
import { expectHealthBody } from './harness/health-body.ts';
import { remove } from './harness/removal.ts';
import { scenarioMs, withCluster, withNodes } from './harness/scenario.ts';
import { until } from './harness/until.ts';

describe('health of a real cluster', function () {
  this.timeout(scenarioMs);

  it('501 before init, 503 sealed, 200 active, 473 performance standby, 474 cut off, 530 removed', () =>
    withNodes({ seal: 'shamir', elections: 'never' }, async (cluster) => {
      for (const node of cluster.nodes) expectHealthBody(await node.reaches(501));
      const [a, b, c] = [cluster.node(1), cluster.node(2), cluster.node(3)];
      await cluster.initialize(a);
      await cluster.join(b, a);
      await cluster.join(c, a);
      expect(await cluster.settled()).to.equal(a);
      expectHealthBody(await a.reaches(200));
      expectHealthBody(await b.reaches(473));
      expect((await cluster.askWhenLed(c, 'PUT', 'sys/seal')).status).to.equal(204);
      expectHealthBody(await c.reaches(503));
      cluster.isolate(b);
      const cutOff = await b.reaches(474);
      expectHealthBody(cutOff);
      expect(cutOff.body['last_request_forwarding_heartbeat_ms'], 'twice the interval has passed').to.be.at.least(2000);
      cluster.heal();
      await b.reaches(473);
      // The removal is refused until the healed link carries Raft messages again.
      await remove(cluster, c, { through: a });
      expectHealthBody(await c.reaches(530));
    }));

  it('429 for a standby that is configured to forward everything, and its forwarded requests succeed', () =>
    withNodes({ config: { performance_standby: false } }, async (cluster) => {
      const [a, b, c] = [cluster.node(1), cluster.node(2), cluster.node(3)];
      await cluster.initialize(a);
      for (const node of [b, c]) await cluster.admit(node, a);
      for (const node of [b, c]) expectHealthBody(await node.reaches(429));
      expect((await cluster.askWhenLed(b, 'POST', 'transit/keys/k', {})).status).to.equal(200);
      const encrypted = await cluster.askWhenLed(c, 'POST', 'transit/encrypt/k', { plaintext: 'AAAA' });
      expect(encrypted.status, encrypted.text).to.equal(200);
      const read = await cluster.askWhenLed(b, 'GET', 'transit/keys/k');
      expect(read.at('data.latest_version'), read.text).to.equal(1);
      cluster.isolate(b);
      await b.reaches(474);
      expect((await cluster.ask(b, 'GET', 'transit/keys/k')).status).to.equal(503);
    }));

  it('supports overrides in each state, and answers HEAD as GET', () =>
    withCluster({ size: 2, elections: 'never' }, async (cluster) => {
      const leader = await cluster.settled();
      const [standby = leader] = cluster.others(leader);
      for (const { node, query, code } of [
        { node: leader, query: '?activecode=299', code: 299 },
        { node: leader, query: '?standbycode=299&performancestandbycode=298', code: 200 },
        { node: standby, query: '?performancestandbycode=299', code: 299 },
        { node: standby, query: '?perfstandbyok=true', code: 200 },
        { node: standby, query: '?standbyok=true', code: 473 },
        { node: standby, query: '?perfstandbyok=maybe', code: 400 },
      ]) {
        // A standby whose heartbeat was late has another code for a moment.
        await until(`${node.name}${query} is ${code}`, async () => (await node.health(query))?.code === code);
        await until(`HEAD too`, async () => (await node.ask('HEAD', `sys/health${query}`)).status === code);
      }
      cluster.isolate(standby, 'cut');
      await standby.reaches(474);
      expect((await standby.health('?haunhealthycode=299&perfstandbyok=1&standbyok=1'))?.code).to.equal(299);
    }));
});
