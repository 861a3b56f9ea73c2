// @live
// Limits count a forwarded request on the node that executes it.
import { expect } from 'chai';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';

describe('the limits of nodes in a cluster', function () {
  this.timeout(scenarioMs);

  it('count a request where it is executed, and return the refusal to its caller', () =>
    withCluster({ size: 2, elections: 'never', config: { limits: { changes: 1, waiting: 0 } } }, async (cluster) => {
      const leader = await cluster.settled();
      const [standby = leader] = cluster.others(leader);
      const refusedBy = async (node: LiveNode): Promise<number> => {
        const { text } = await cluster.ask(node, 'GET', 'sys/metrics?format=prometheus');
        return Number(/^svc_core_requests_refused\{kind="changes"\} (\d+)$/m.exec(text)?.[1]);
      };
      // Slow to make, so that the others arrive meanwhile, and well within the time for a forwarded request.
      const create = (index: number) => cluster.ask(standby, 'POST', `transit/keys/k${index}`, { type: 'rsa-3072' });
      const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => create(index)));
      const refused = answers.filter(({ status }) => status === 503);
      expect(new Set(answers.map(({ status }) => status)), 'some find it busy, one is served').to.deep.equal(new Set([200, 503]));
      for (const { headers, text } of refused)
        expect([headers.get('retry-after'), text]).to.deep.equal([
          '1',
          '{"errors":["the node has too much to do at the moment; nothing was done"]}\n',
        ]);
      expect([await refusedBy(leader), await refusedBy(standby)]).to.deep.equal([refused.length, 0]);
      const keys = (await cluster.ask(leader, 'LIST', 'transit/keys')).at('data.keys');
      const done = answers.flatMap(({ status }, index) => (status === 200 ? [`k${index}`] : []));
      expect(keys, 'what was refused was not done').to.have.members(done);
    }));
});
