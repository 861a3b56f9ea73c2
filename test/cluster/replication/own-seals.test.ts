// @live
// Two clusters whose seals need no shares: a secondary that restarts unseals by itself, whatever its primary has changed.
import { expect } from 'chai';
import { LiveCluster } from '../harness/live-cluster.ts';
import { remove } from '../harness/removal.ts';
import { scenarioMs } from '../harness/scenario.ts';
import { codesOf, TwoSites } from '../harness/two-sites.ts';
import { until } from '../harness/until.ts';

describe('a secondary with a static seal of its own', function () {
  this.timeout(scenarioMs);
  const clusters: LiveCluster[] = [];
  after(async () => {
    for (const cluster of clusters) await cluster.end();
  });
  const site = async (): Promise<LiveCluster> => {
    const cluster = await LiveCluster.formed({ size: 2, seal: 'static', links: 'direct' });
    clusters.push(cluster);
    return cluster;
  };

  it('unseals by itself after a rotation and a rekey of its primary, and serves after a promotion', async () => {
    const [east, west] = await Promise.all([site(), site()]);
    const sites = new TwoSites(east);
    const active = await east.leader();
    const enabled = await sites.control(east, 'primary/enable');
    expect(enabled.status, enabled.text).to.equal(204);
    const led = await sites.active(west);
    await sites.follow(east, west, 'west');
    // All nodes were sealed for a moment, until each had opened the new state. None of them could have taken the leadership over.
    await sites.equal(east, west);
    for (const { name, log } of west.nodes) {
      expect(log, name).to.contain('do not open the keyring in the store');
      expect(log, name).not.to.contain('transfers its leadership');
    }
    expect((await sites.active(west)).name).to.equal(led.name);
    expect((await east.askWhenLed(active, 'POST', 'transit/keys/k', {})).status).to.be.lessThan(300);
    const text = await east.askWhenLed(active, 'POST', 'transit/encrypt/k', { plaintext: 'eA==' });

    expect((await east.askWhenLed(active, 'POST', 'sys/rotate')).status).to.equal(204);
    const started = await east.askWhenLed(active, 'POST', 'sys/rotate/recovery/init', { secret_shares: 1, secret_threshold: 1 });
    const update = { nonce: started.string('data.nonce'), key: east.shares[0] };
    const rekeyed = await east.askWhenLed(active, 'POST', 'sys/rotate/recovery/update', update);
    expect(rekeyed.at('data.complete'), rekeyed.text).to.equal(true);
    await sites.equal(east, west);

    // The codes of a secondary: 472 on every node, whatever a probe allows for standbys, and 474 without contact to the active node.
    for (const node of west.nodes) {
      const seen = await node.health('?standbyok=true&perfstandbyok=true');
      expect([seen?.code, seen?.body['replication_dr_mode']]).to.deep.equal([472, 'secondary']);
      expect((await node.health('?drsecondarycode=299&standbyok=true'))?.code).to.equal(299);
    }
    const first = await sites.active(west);
    await first.kill();
    for (const node of west.others(first)) {
      await sites.reach(west, [474]);
      const seen = await node.health('?standbyok=true&perfstandbyok=true');
      expect([seen?.code, seen?.body['replication_dr_mode']]).to.deep.equal([474, 'unknown']);
    }
    await Promise.all(west.others(first).map((node) => node.kill()));
    await Promise.all(west.nodes.map((node) => node.start()));
    await sites.reach(west, [472]);
    const target = await sites.active(west);
    const [gone] = west.others(target);
    if (gone === undefined) throw new Error('the secondary has one node');
    // With a replicated token. A removed node answers 530, as in any cluster.
    await remove(west, gone, { through: target, token: east.rootToken });
    await gone.reaches(530);
    await sites.lose(east);
    const promoted = await sites.control(west, 'secondary/promote', { force: true });
    expect(promoted.status, promoted.text).to.equal(200);
    await target.reaches(200);
    expect(await codesOf(west), 'the removed node learns of nothing').to.have.members([200, 530]);
    const decrypted = await until('the promoted cluster decrypts', async () => {
      const body = { ciphertext: text.string('data.ciphertext') };
      const answer = await target.ask('POST', 'transit/decrypt/k', { token: east.rootToken, body });
      return answer.status === 200 && answer;
    });
    expect(decrypted.at('data.plaintext')).to.equal('eA==');
  });
});
