// @live
// Backup and restore of a whole cluster through every kind of node.
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster, withNodes } from './harness/scenario.ts';
import { sendSnapshot, snapshotPath, takeSnapshot } from './harness/snapshots.ts';
import { until } from './harness/until.ts';

const keyStatus = async (cluster: LiveCluster, node: LiveNode, key: string): Promise<number> =>
  (await cluster.askWhenLed(node, 'GET', `transit/keys/${key}`)).status;

async function encrypt(cluster: LiveCluster, node: LiveNode, key: string): Promise<string> {
  const answer = await cluster.askWhenLed(node, 'POST', `transit/encrypt/${key}`, { plaintext: 'c2VjcmV0' });
  expect(answer.status, answer.text).to.equal(200);
  return answer.string('data.ciphertext');
}

async function decrypts(cluster: LiveCluster, node: LiveNode, key: string, ciphertext: string): Promise<void> {
  const answer = await cluster.askWhenLed(node, 'POST', `transit/decrypt/${key}`, { ciphertext });
  expect([answer.status, answer.status === 200 && answer.at('data.plaintext')]).to.deep.equal([200, 'c2VjcmV0']);
}

describe('a snapshot of a cluster', function () {
  this.timeout(scenarioMs);

  for (const through of ['the active node', 'a standby'] as const) {
    it(`taken and restored through ${through} brings back the state on every node, with a warning`, () =>
      withNodes({ elections: 'never' }, async (cluster) => {
        const [leader, standby, late] = [cluster.node(1), cluster.node(2), cluster.node(3)];
        await cluster.initialize(leader);
        await cluster.join(standby, leader);
        const nodes = [leader, standby];
        await cluster.settled(nodes);
        const node = through === 'a standby' ? standby : leader;
        const membersBefore = (await cluster.askWhenLed(leader, 'GET', 'sys/storage/raft/configuration')).at('data');
        await cluster.askWhenLed(leader, 'POST', 'transit/keys/kept', {});
        const ciphertext = await encrypt(cluster, leader, 'kept');
        const snapshot = await takeSnapshot(cluster, node);
        await cluster.askWhenLed(leader, 'POST', 'transit/keys/later', {});
        await cluster.askWhenLed(leader, 'POST', 'transit/keys/kept/config', { deletion_allowed: true });
        expect((await cluster.askWhenLed(leader, 'DELETE', 'transit/keys/kept')).status).to.equal(204);
        expect((await cluster.askWhenLed(leader, 'POST', 'sys/rotate')).status).to.equal(204);
        const newer = await takeSnapshot(cluster, node);

        const restored = await sendSnapshot(node, snapshot, { token: cluster.rootToken });
        expect(restored.status, restored.text).to.equal(200);
        expect(restored.text).to.match(/tokens revoked since then are valid again/);
        for (const one of nodes) {
          await one.reaches(200, 473);
          expect(await keyStatus(cluster, one, 'kept'), one.name).to.equal(200);
          expect(await keyStatus(cluster, one, 'later'), one.name).to.equal(404);
          await decrypts(cluster, one, 'kept', ciphertext);
        }
        // Later writes succeed, and a later snapshot with another keyring contains them.
        expect((await cluster.askWhenLed(node, 'POST', 'transit/keys/after', {})).status).to.equal(200);
        expect((await sendSnapshot(node, newer, { token: cluster.rootToken })).status).to.equal(200);
        for (const one of nodes) {
          expect(await keyStatus(cluster, one, 'later'), one.name).to.equal(200);
          expect(await keyStatus(cluster, one, 'after'), one.name).to.equal(404);
        }
        expect((await cluster.askWhenLed(leader, 'GET', 'sys/storage/raft/configuration')).at('data')).to.deep.equal(
          membersBefore,
        );
        await cluster.askWhenLed(node, 'POST', 'transit/keys/last', {});
        await encrypt(cluster, leader, 'last');

        // The authority of the cluster is unchanged: another node gets a certificate and joins.
        await cluster.join(late, standby);
        await cluster.settled();
        expect(await keyStatus(cluster, late, 'last')).to.equal(200);
      }));
  }

  it('is refused before anything changes if it is not a snapshot or the caller may not restore one', () =>
    withCluster({ size: 2, elections: 'never' }, async (cluster) => {
      const leader = await cluster.settled();
      await cluster.askWhenLed(leader, 'POST', 'transit/keys/k', {});
      const snapshot = await takeSnapshot(cluster, leader);
      const policy = `path "${snapshotPath}*" { capabilities = ["read", "update"] }`;
      expect((await cluster.askWhenLed(leader, 'POST', 'sys/policies/acl/backup', { policy })).status).to.equal(204);
      const made = await cluster.askWhenLed(leader, 'POST', 'auth/token/create', { policies: ['backup'] });
      const operator = made.string('auth.client_token');
      const withSudo = `path "${snapshotPath}" { capabilities = ["update", "sudo"] }`;
      expect((await cluster.askWhenLed(leader, 'POST', 'sys/policies/acl/restore', { policy: withSudo })).status).to.equal(204);
      const restorer = await cluster.askWhenLed(leader, 'POST', 'auth/token/create', { policies: ['restore'] });
      for (const node of cluster.nodes) {
        for (const garbage of [Buffer.from('garbage'), randomBytes(5_000_000), snapshot.subarray(0, snapshot.length >> 1)]) {
          for (const to of [snapshotPath, `${snapshotPath}-force`]) {
            const answer = await sendSnapshot(node, garbage, { token: cluster.rootToken, to });
            expect(answer.status, `${node.name} ${garbage.length} ${to}: ${answer.text}`).to.equal(400);
          }
        }
        expect((await sendSnapshot(node, snapshot, { token: 's.none' })).status).to.equal(403);
        for (const to of [snapshotPath, `${snapshotPath}-force`]) {
          expect((await sendSnapshot(node, snapshot, { token: operator, to })).status, `${to} without sudo`).to.equal(403);
        }
      }
      expect((await cluster.askWhenLed(leader, 'POST', snapshotPath)).status, 'no body').to.equal(400);
      expect(await keyStatus(cluster, leader, 'k')).to.equal(200);
      expect((await sendSnapshot(leader, snapshot, { token: restorer.string('auth.client_token') })).status).to.equal(200);
    }));

  it('of another cluster needs force, and seals the nodes until they get the shares of that cluster', () =>
    withCluster({ size: 1, seal: 'shamir' }, async (other) => {
      const source = other.node(1);
      await other.askWhenLed(source, 'POST', 'transit/keys/foreign', {});
      const ciphertext = await encrypt(other, source, 'foreign');
      const snapshot = await takeSnapshot(other, source);
      await source.stop(); // both clusters use the same addresses
      await withNodes({ seal: 'shamir' }, async (cluster) => {
        const [taker, second, late] = [cluster.node(1), cluster.node(2), cluster.node(3)];
        await cluster.initialize(taker);
        await cluster.join(second, taker);
        await cluster.settled([taker, second]);
        await cluster.askWhenLed(taker, 'POST', 'transit/keys/own', {});
        const refused = await sendSnapshot(second, snapshot, { token: cluster.rootToken });
        expect(refused.status, refused.text).to.equal(400);
        expect(refused.text).to.match(/another root key/);
        expect(await keyStatus(cluster, taker, 'own')).to.equal(200);
        const forced = await sendSnapshot(taker, snapshot, { token: cluster.rootToken, to: `${snapshotPath}-force` });
        expect(forced.status, forced.text).to.equal(200);
        expect(forced.text).to.match(/every node is sealed/);
        for (const node of [taker, second]) await node.reaches(503);
        const unseal = (node: LiveNode): Promise<void> => cluster.unseal(node, other.shares);
        // Another node becomes active: the node that took the restore still has to write the authority under the new keys.
        await unseal(second);
        await second.reaches(200);
        await unseal(taker);
        await taker.reaches(473);
        for (const node of [taker, second]) {
          const answer = await other.askWhenLed(node, 'POST', 'transit/decrypt/foreign', { ciphertext });
          expect(answer.status, `${node.name}: ${answer.text}`).to.equal(200);
        }
        expect((await other.askWhenLed(taker, 'POST', 'transit/keys/new', {})).status).to.equal(200);
        await until('the authority is back', () => taker.log.includes("the cluster's authority was written"));
        await cluster.admit(late, second);
        await unseal(late);
        await late.reaches(473);
        expect((await other.askWhenLed(late, 'GET', 'transit/keys/new')).status).to.equal(200);
      });
    }));
});
