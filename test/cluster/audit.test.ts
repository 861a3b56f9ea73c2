// @live
// In a cluster, only the node that decides a request audits it.
import { expect } from 'chai';
import { base64 } from '../process/live-server.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

interface Entry {
  readonly type: string;
  readonly forwarded_from?: string;
  readonly request: { readonly path: string; readonly remote_address: string };
}

/** Returns the audit entries of one path on this node, in order. */
const entriesOf = (node: LiveNode, path: string): readonly Entry[] =>
  node.server.stdout
    .split('\n')
    .filter((line) => line.startsWith('{"chain"'))
    .map((line): Entry => JSON.parse(line))
    .filter(({ request }) => request.path === path);

/** A long interval, so that this standby serves the request on a slow machine too. */
const config = { audit: [{ type: 'stdout', name: 'out' }], cluster_heartbeat_interval: '10s' };

describe('the audit in a cluster', function () {
  this.timeout(scenarioMs);

  it('has both entries on the node that decided, with the name of the node that received the request', () =>
    withCluster({ config, elections: 'never' }, async (cluster) => {
      const leader = await cluster.settled();
      const [standby = leader] = cluster.others(leader);
      const shown = (node: LiveNode, path: string) =>
        entriesOf(node, path).map(({ type, forwarded_from: from, request }) => [type, from, request.remote_address]);
      /** The entries are written before the answer, but this process may read the answer first. */
      const both = (node: LiveNode, path: string) =>
        until(`${node.name} has audited ${path}`, () => entriesOf(node, path).length >= 2 && shown(node, path));

      expect((await cluster.ask(standby, 'POST', 'transit/keys/k', {})).status).to.equal(200);
      const forwarded = [
        ['request', standby.name, '127.0.0.1'],
        ['response', standby.name, '127.0.0.1'],
      ];
      expect(await both(leader, 'transit/keys/k')).to.deep.equal(forwarded);
      expect(shown(standby, 'transit/keys/k')).to.deep.equal([]);

      expect((await cluster.ask(standby, 'POST', 'transit/encrypt/k', { plaintext: base64('x') })).status).to.equal(200);
      expect(await both(standby, 'transit/encrypt/k')).to.deep.equal([
        ['request', undefined, '127.0.0.1'],
        ['response', undefined, '127.0.0.1'],
      ]);
      expect(shown(leader, 'transit/encrypt/k')).to.deep.equal([]);

      // A request that a standby would refuse goes to the active node, which decides and audits it.
      expect((await cluster.ask(standby, 'GET', 'transit/keys/none')).status).to.equal(404);
      expect(await both(leader, 'transit/keys/none')).to.deep.equal(forwarded);
      expect(shown(standby, 'transit/keys/none')).to.deep.equal([]);

      const hash = async (node: LiveNode) =>
        (await cluster.ask(node, 'POST', 'sys/audit-hash/out', { input: 'a text' })).string('data.hash');
      expect(await hash(standby)).to.equal(await hash(leader));
    }));
});
