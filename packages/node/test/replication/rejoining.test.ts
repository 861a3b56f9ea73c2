import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acknowledgeMsMin } from '@transitd/replication';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

describe('a cluster that has left a set and follows again', () => {
  let folder = '';
  const sites: Site[] = [];
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-rejoining-'));
  });
  after(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });

  it('is waited for although its keys open the received state, so that it never says hello with it', async () => {
    const [east, west] = [await Site.open(folder, 'east'), await Site.open(folder, 'west')];
    sites.push(east, west);
    await east.replication.enablePrimary();
    await west.followUnsealed(east, 'west');
    await until(() => west.position === east.position);
    await east.replication.revoke('west');
    await west.replication.disableSecondary({ force: true });
    await until(() => west.health === 200);

    await east.replication.material.setting.write({ timeoutMs: acknowledgeMsMin, onTimeout: 'refuse' });
    await west.follow(east, 'west');
    await until(() => west.health === 472 && west.position === east.position);
    await west.counted();
    expect(west.node.status.state, 'not sealed since').to.equal('dr_active');
    const { replica } = west.store;
    const commit = replica.commit.bind(replica);
    replica.commit = () => new Promise(() => undefined); // it is connected, but commits nothing
    const created = await east.engine.createKey('k', {}).catch((error: { code: string }) => error.code);
    replica.commit = commit;
    expect(created).to.equal('outcome_unknown');
  });

  it('is promoted without force, although the later epoch of its own promotion was undone', async () => {
    const [north, south] = [await Site.open(folder, 'north'), await Site.open(folder, 'south')];
    sites.push(north, south);
    await north.replication.enablePrimary();
    await south.followUnsealed(north, 'south');
    await until(() => south.position === north.position);
    await north.replication.revoke('south'); // so that it does not learn of the promotion
    await south.replication.promote({ force: true });
    await until(() => south.health === 200);
    await south.replication.disablePrimary();
    await south.follow(north, 'south');
    await south.counted();
    await north.replication.demote();
    await until(() => south.position === north.position);
    await until(() => south.replication.lastHeard?.demoted === true);
    expect(await south.replication.promote({ force: false })).to.include({ lossless: true });
  });
});
