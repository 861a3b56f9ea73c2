// @live
// Operations that go beyond those of the peers serve the same keys on every node, after a failover and after a restore, on both engines.
import { expect } from 'chai';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { sendSnapshot, takeSnapshot } from './harness/snapshots.ts';
import { until } from './harness/until.ts';

interface Pair {
  readonly plaintext: string;
  readonly ciphertext: string;
}

/** What a cluster answered first. */
interface Seen {
  readonly pairs: readonly Pair[];
  /** Key material by the path that exports it. */
  readonly exported: ReadonlyMap<string, unknown>;
  /** A token that may only create keys. */
  readonly creator: string;
}

const exports = [
  ...['der', 'pem', 'jwk'].flatMap((format) => ['signing-key', 'public-key'].map((part) => `${part}/pair?format=${format}`)),
  ...['raw', 'jwk'].map((format) => `encryption-key/secret?format=${format}`),
];

/** Sends a request that may be repeated, until its outcome is known. */
async function data(cluster: LiveCluster, node: LiveNode, method: string, path: string, body?: object): Promise<unknown> {
  const answer = await cluster.askUntilKnown(node, method, path, body);
  expect([200, 204], `${method} ${path}: ${answer.text}`).to.include(answer.status);
  return answer.status === 204 ? undefined : answer.at('data');
}

async function datakeys(cluster: LiveCluster, node: LiveNode): Promise<readonly Pair[]> {
  const made = await data(cluster, node, 'POST', 'transit/datakeys/plaintext/secret', { count: 3 });
  return Reflect.get(Object(made), 'key_pairs');
}

async function prepare(cluster: LiveCluster, node: LiveNode): Promise<Seen> {
  await data(cluster, node, 'POST', 'transit/keys/secret', { exportable: true });
  await data(cluster, node, 'POST', 'transit/keys/pair', { type: 'ecdsa-p256', exportable: true });
  const policy = 'path "transit/keys/*" { capabilities = ["create"] }';
  await data(cluster, node, 'POST', 'sys/policies/acl/creator', { policy });
  const token = await cluster.askUntilKnown(node, 'POST', 'auth/token/create', { policies: ['creator'] });
  const exported = new Map<string, unknown>();
  for (const path of exports) exported.set(path, await data(cluster, node, 'GET', `transit/export/${path}`));
  return { pairs: await datakeys(cluster, node), exported, creator: token.string('auth.client_token') };
}

let serial = 0;

/** Checks that a node answers as the cluster did first. */
async function expectSame(cluster: LiveCluster, node: LiveNode, { pairs, exported, creator }: Seen): Promise<void> {
  const all = [...pairs, ...(await datakeys(cluster, node))];
  const batch = { batch_input: all.map(({ ciphertext }) => ({ ciphertext })) };
  const opened: unknown = Reflect.get(
    Object(await data(cluster, node, 'POST', 'transit/decrypt/secret', batch)),
    'batch_results',
  );
  expect(opened, node.name).to.deep.equal(all.map(({ plaintext }) => ({ plaintext, reference: '' })));
  for (const [path, first] of exported)
    expect(await data(cluster, node, 'GET', `transit/export/${path}`), `${node.name} ${path}`).to.deep.equal(first);

  const create = async (name: string) =>
    (await cluster.askUntilKnown(node, 'POST', `transit/keys/${name}`, {}, { token: creator })).status;
  for (const name of ['secret', 'pair']) expect(await create(name), `${node.name} has ${name}`).to.equal(403);
  // The key may exist after an unknown outcome: then the next name is tried.
  await until(`${node.name} creates a key`, async () => (await create(`new-${serial++}`)) === 200);
}

describe('data keys, export formats and tokens that may only create', function () {
  this.timeout(scenarioMs);

  for (const storage of ['raft', 'etcd'] as const)
    it(`are the same on every node, after a failover and after a restore, on ${storage}`, () =>
      withCluster({ storage }, async (cluster) => {
        const first = await cluster.settled();
        const seen = await prepare(cluster, first);
        for (const node of cluster.nodes) await expectSame(cluster, node, seen);
        const snapshot = await takeSnapshot(cluster, first);

        await first.kill();
        const left = cluster.others(first);
        await cluster.leader(left);
        for (const node of left) await expectSame(cluster, node, seen);

        const [node = first] = left;
        for (const name of ['secret', 'pair']) {
          await data(cluster, node, 'POST', `transit/keys/${name}/config`, { deletion_allowed: true });
          await until(`${name} is deleted`, async () => {
            await cluster.askUntilKnown(node, 'DELETE', `transit/keys/${name}`);
            return (await cluster.askUntilKnown(node, 'GET', `transit/keys/${name}`)).status === 404;
          });
        }
        const restored = await sendSnapshot(node, snapshot, { token: cluster.rootToken });
        expect(restored.status, restored.text).to.equal(200);
        for (const one of left) {
          await one.reaches(200, 473);
          await expectSame(cluster, one, seen);
        }
      }));
});
