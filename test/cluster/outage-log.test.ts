// @live
// The logs of the nodes are enough to reconstruct an outage.
import { expect } from 'chai';
import { processMs } from '../process/live-server.ts';
import { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { until } from './harness/until.ts';

type Line = Readonly<Record<string, unknown>>;

const lines = (node: LiveNode): readonly Line[] =>
  node.log
    .split('\n')
    .filter((text) => text.startsWith('{') && text.endsWith('}'))
    .map((text) => JSON.parse(text) as Line);

/** @param from - number of the first line that counts */
const said = (node: LiveNode, msg: string, fields: Line = {}, from = 0): readonly Line[] =>
  lines(node)
    .slice(from)
    .filter((line) => line['msg'] === msg && Object.entries(fields).every(([name, value]) => line[name] === value));

/** Waits for a line. */
const says = (node: LiveNode, msg: string, fields: Line = {}, from = 0): Promise<Line> =>
  until(`${node.name} logs "${msg}"`, () => said(node, msg, fields, from)[0], { explain: () => node.tail(30) });

describe('the logs of the nodes', function () {
  this.timeout(processMs);
  let cluster: LiveCluster | undefined;
  after(() => cluster?.end());

  it('show the leader of each term, who was partitioned and why, and when it ended', async () => {
    cluster = await LiveCluster.formed({ config: { raft: { election_timeout: '3s' } } });
    const leader = await cluster.settled();
    const [second, third] = cluster.others(leader) as [LiveNode, LiveNode];
    await says(leader, 'this node was elected leader');
    const elected = said(leader, 'this node was elected leader').at(-1) ?? {};
    await says(leader, 'this node leads and has applied an entry of its term', { term: elected['term'] });
    for (const node of [second, third]) {
      await says(node, 'this node follows another leader', { leader: leader.name });
      await says(node, 'this node has caught up with the active node and answers from its own state');
      await says(node, 'connected to a peer', {
        name: leader.name,
        address: `${leader.proxy.address.host}:${leader.proxy.address.port}`,
      });
    }
    const open = await says(leader, 'the cluster port is open');
    expect(String(open['address'])).to.match(new RegExp(`^${leader.host}:\\d+$`));
    expect(open['address']).not.to.equal(open['advertised']);

    // On a busy machine, there may have been another election or a short outage before.
    const before = new Map(cluster.nodes.map((node) => [node, lines(node).length]));
    cluster.isolate(leader, 'cut');
    const next = await cluster.leader([second, third]);
    const later = await says(next, 'this node was elected leader', {}, before.get(next));
    expect(Number(later['term'])).to.be.greaterThan(Number(elected['term']));
    await says(leader, 'this node lost the leadership', { term: elected['term'] });
    await says(leader, 'this node is cut off: no active node has answered its heartbeats for twice cluster_heartbeat_interval');
    const unreachable = await says(leader, 'a peer cannot be reached', { name: next.name }, before.get(leader));
    expect(unreachable['address']).to.equal(`${next.proxy.address.host}:${next.proxy.address.port}`);
    expect(String(unreachable['reason'])).to.match(/ECONN|ended/);
    expect(unreachable['from']).to.equal(leader.host);
    const other = next === second ? third : second;
    await says(other, 'this node follows another leader', { leader: next.name, term: later['term'] });

    cluster.heal();
    await cluster.settled();
    await until(
      'the node that was cut off says that it has caught up',
      () => said(leader, 'this node has caught up with the active node and answers from its own state').length > 0,
    );
    for (const node of cluster.nodes)
      expect(said(node, 'a peer cannot be reached').length, 'repeated lines are limited').to.be.below(25);
  });
});
