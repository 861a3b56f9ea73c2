// @live
// A soft-deleted key and a disabled version stay out of use on every node, whatever happens to the active node.
import { expect } from 'chai';
import type { LiveCluster } from './harness/live-cluster.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';

const plaintext = 'AAAA';

describe('a key out of use in a cluster', function () {
  this.timeout(scenarioMs);

  it('is refused by every node from the moment at which a standby has answered, after a failover and after a restart', () =>
    withCluster({ workers: 1 }, async (cluster) => {
      const leader = await cluster.settled();
      const [standby = leader] = cluster.others(leader);
      const done = async (method: string, path: string, body?: unknown): Promise<void> => {
        const answer = await cluster.askUntilKnown(standby, method, path, body);
        expect(answer.status, answer.text).to.equal(200);
      };
      const ciphertexts = new Map<string, string>();
      for (const name of ['gone', 'half', 'doomed']) {
        await done('POST', `transit/keys/${name}`, {});
        const made = await cluster.askUntilKnown(standby, 'POST', `transit/encrypt/${name}`, { plaintext });
        ciphertexts.set(name, made.string('data.ciphertext'));
        await done('POST', `transit/keys/${name}/rotate`, {});
      }
      await expectUses(cluster, ciphertexts, { gone: 200, half: 200, doomed: 200 });
      await done('DELETE', 'transit/keys/gone/soft-delete');
      await done('POST', 'transit/keys/half/versions/1/disable', { reason: 'leaked' });
      await done('POST', 'transit/keys/doomed/config', { deletion_allowed: true });
      await done('POST', 'transit/keys/doomed/schedule-deletion', { after: '7d' });
      const due = (await cluster.askUntilKnown(standby, 'GET', 'transit/keys/doomed')).string('data.scheduled_deletion.due_time');
      const expectRefused = async (): Promise<void> => {
        await expectUses(cluster, ciphertexts, { gone: 400, half: 400, doomed: 400 });
        for (const node of cluster.nodes.filter((each) => each.running)) {
          const half = await cluster.askUntilKnown(node, 'GET', 'transit/keys/half');
          expect(half.at('data.disabled_versions.1.reason'), node.name).to.equal('leaked');
          const doomed = await cluster.askUntilKnown(node, 'GET', 'transit/keys/doomed');
          expect(doomed.at('data.scheduled_deletion.due_time'), node.name).to.equal(due);
          expect((await cluster.askUntilKnown(node, 'POST', 'transit/encrypt/half', { plaintext })).status).to.equal(200);
        }
      };
      await expectRefused();
      await leader.kill();
      await cluster.leader(cluster.others(leader));
      await expectRefused();
      await leader.start();
      await leader.reaches(473);
      await expectRefused();
      for (const name of ['gone', 'doomed']) await done('POST', `transit/keys/${name}/soft-delete-restore`);
      await done('POST', 'transit/keys/half/versions/1/enable');
      await expectUses(cluster, ciphertexts, { gone: 200, half: 200, doomed: 200 });
      for (const node of cluster.nodes)
        expect((await cluster.askUntilKnown(node, 'GET', 'transit/keys/doomed')).at('data.scheduled_deletion')).to.equal(
          undefined,
        );
    }));
});

/** Checks that every running node decrypts what version 1 of the keys has encrypted, or refuses to. */
async function expectUses(
  cluster: LiveCluster,
  ciphertexts: ReadonlyMap<string, string>,
  statuses: Readonly<Record<string, number>>,
): Promise<void> {
  for (const node of cluster.nodes.filter((each) => each.running))
    for (const [name, ciphertext] of ciphertexts) {
      const { status, text } = await cluster.askUntilKnown(node, 'POST', `transit/decrypt/${name}`, { ciphertext });
      expect(status, `${node.name}: ${text}`).to.equal(statuses[name]);
    }
}
