import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

const dayMs = 86_400_000;

describe('the maintenance of a secondary', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-maintenance-'));
  const sites: Site[] = [];
  after(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });

  it('changes nothing that is replicated; what is overdue runs once after the promotion', async () => {
    let laterMs = 0;
    const clocks = () => ({ wallMs: Date.now() + laterMs, monotonicMs: performance.now() + laterMs });
    const settings = { clocks, barrier_rotation: { interval: '24h' } };
    const [east, west] = [await Site.open(folder, 'east', settings), await Site.open(folder, 'west', settings)];
    sites.push(east, west);
    await east.replication.enablePrimary();
    await east.engine.createKey('k', { autoRotatePeriodS: 3_600 });
    const { tokens, registry } = east.services;
    const principal = await tokens.authenticate(east.rootToken);
    if (principal === undefined) throw new TypeError('the root token is not valid');
    const where = { principal, privileged: true, path: 'auth/token/create', makesOrphans: false };
    await registry.create({ policies: ['root'], ttlS: 3_600 }, where);
    await west.followUnsealed(east, 'west');
    await east.node.member?.cluster?.maintain();
    await until(() => west.node.member?.peers.canaryUtcMs !== undefined && west.position === east.position);
    await until(() => west.node.eligibility.replicationStatus?.digest !== undefined);
    await east.node.stop();

    const seen = async () => ({
      position: west.position,
      digest: west.node.eligibility.replicationStatus?.digest,
      key: (await west.engine.readKey('k')).latestVersion,
      term: west.store.barrier.rotation.keyStatus().term,
      tokens: (await west.store.barrier.store.range({ prefix: 'access/token/' })).records.length,
      canary: await west.read('core/canary'),
    });
    const [before, canaryUtcMs] = [await seen(), west.node.member?.peers.canaryUtcMs];
    expect(before).to.include({ key: 1, tokens: 2 });
    laterMs = 40 * dayMs; // all is overdue: the key, the barrier's key and the token
    expect(await west.store.barrier.rotation.isDue(), 'the key of the barrier').to.equal(true);
    await west.node.maintenance.runActiveTasks();
    await west.node.maintenance.createWrappingKeys();
    await west.node.member?.cluster?.maintain();
    expect(await seen()).to.deep.equal(before);

    await west.replication.promote({ force: true });
    for (const round of ['the first round', 'the second round']) {
      await west.node.maintenance.runActiveTasks();
      await west.node.member?.cluster?.maintain();
      await until(() => west.node.member?.peers.canaryUtcMs !== canaryUtcMs); // a round of the node's own may be running
      const { key, term, tokens: left } = await seen();
      // The promotion itself has made a new key of the barrier.
      expect({ key, term, left }, round).to.deep.equal({ key: 2, term: before.term + 1, left: 1 });
    }
  });

  it('rotates the authority of its own nodes, and follows on', async () => {
    const [north, south] = [await Site.open(folder, 'north'), await Site.open(folder, 'south')];
    sites.push(north, south);
    await north.replication.enablePrimary();
    await south.followUnsealed(north, 'south');
    await until(() => south.position === north.position);
    const { cluster } = south.store;
    const authority = async () => (await cluster?.signingAuthority())?.certificate;
    const before = await authority();

    await cluster?.rotation.begin();
    await until(() => {
      void cluster?.maintain();
      return cluster?.rotation.status.phase === 'none';
    });
    expect(await authority())
      .to.be.a('string')
      .and.not.to.equal(before);
    await north.write('transit/m/k', 'later');
    await until(() => south.position === north.position);
    expect(await south.read('transit/m/k')).to.equal('later');
  });
});
