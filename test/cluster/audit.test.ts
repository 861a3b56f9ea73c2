// @live
// In a cluster, only the node that decides a request audits it.
import { expect } from 'chai';
import { answeredByGateways } from '../process/gateways/clients.ts';
import { base64 } from '../process/live-server.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, sharedCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

interface Entry {
  readonly type: string;
  readonly auth: { readonly policy_results?: object };
  readonly refused_by?: object;
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
  const onShared = sharedCluster({ workers: 1, config, elections: 'never' });

  it('has both entries on the node that decided, with the name of the node that received the request', () =>
    onShared(async (cluster) => {
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

  it('says which rule granted or refused a request: in a gateway, on a standby, and forwarded to the active node', () =>
    onShared(async (cluster) => {
      const leader = await cluster.settled();
      const [standby = leader] = cluster.others(leader);
      for (const { server } of cluster.nodes) await server.log(/"msg":"a gateway thread listens"/);
      const policy = 'path "transit/encrypt/+" { capabilities = ["update"] denied_parameters = { context = [] } }';
      await cluster.ask(leader, 'POST', 'sys/policies/acl/writers', { policy });
      await cluster.ask(leader, 'POST', 'transit/keys/ruled', {});
      const created = await cluster.ask(leader, 'POST', 'auth/token/create', { policies: ['writers'], no_default_policy: true });
      const token = created.string('auth.client_token');
      const rules = [{ policy: 'writers', path: 'transit/encrypt/+' }];
      const granting = [{ name: 'writers', namespace_id: 'root', namespace_path: '', type: 'acl' }];
      const last = (node: LiveNode, path: string) => entriesOf(node, path).slice(-2);

      /** Each request comes on a new connection, so that both threads of a node get some. */
      const ask = async (node: LiveNode, method: string, path: string, body?: object) => {
        const headers = { 'X-Service-Token': token, Connection: 'close' };
        const sent = body === undefined ? {} : { body: JSON.stringify(body) };
        const answer = await fetch(`${node.apiAddress}/v1/${path}`, { method, headers, ...sent });
        return `${answer.status} ${answer.status === 200 ? '' : await answer.text()}`;
      };
      const plaintext = base64('a text');
      for (const node of [leader, standby]) {
        const before = await answeredByGateways(node);
        await until(`the gateway of ${node.name} answers`, async () => {
          expect(await ask(node, 'POST', 'transit/encrypt/ruled', { plaintext })).to.equal('200 ');
          return (await answeredByGateways(node)) > before;
        });
        const entries = await until(`${node.name} has audited`, () => {
          const all = entriesOf(node, 'transit/encrypt/ruled');
          return all.length >= 2 && all;
        });
        for (const { auth } of entries)
          expect(auth.policy_results, node.name).to.deep.equal({ allowed: true, granting_policies: granting, rules });
      }

      for (const node of [leader, standby])
        for (const [method, path, body, by, deciding] of [
          ['POST', 'transit/encrypt/ruled', { plaintext, context: base64('secret context') }, 'denied_parameters.context', rules],
          ['GET', 'transit/keys/ruled', undefined, 'capabilities.read', []],
        ] as const) {
          const count = entriesOf(leader, path).length;
          expect(await ask(node, method, path, body)).to.equal('403 {"errors":["permission denied"]}\n');
          await until('the active node has audited', () => entriesOf(leader, path).length >= count + 2);
          const [, answered] = last(leader, path);
          expect(answered?.auth.policy_results).to.deep.equal({ allowed: false, granting_policies: [], rules: deciding });
          expect(answered?.refused_by).to.deep.equal({ constraint: by });
          expect(answered?.forwarded_from).to.equal(node === leader ? undefined : node.name);
        }
    }));
});
