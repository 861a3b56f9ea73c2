import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

describe('a secondary that has left its set where another one was promoted', () => {
  let folder = '';
  const sites: Site[] = [];
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-same-'));
  });
  after(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });

  it('reads what the other one writes once it follows that, although both keyrings have the same revision', async () => {
    const [east, west, north] = [
      await Site.open(folder, 'east'),
      await Site.open(folder, 'west'),
      await Site.open(folder, 'north'),
    ];
    sites.push(east, west, north);
    await east.replication.enablePrimary();
    // More entries than the other clusters have: so each of them writes its keyring right after the position of the primary.
    for (let n = 0; n < 100; n += 1) await east.write('transit/m/first', `${n}`);
    for (const [site, name] of [
      [west, 'west'],
      [north, 'north'],
    ] as const) {
      await site.followUnsealed(east, name);
    }
    await until(() => [west, north].every(({ position }) => position === east.position));
    await east.replication.demote(); // its position is final
    await until(() =>
      [west, north].every(({ replication, position }) => {
        const { lastHeard } = replication;
        return lastHeard?.demoted === true && position === lastHeard.at.index;
      }),
    );
    await west.replication.promote({ force: true });
    await north.replication.disableSecondary({ force: true });
    const revisions = await Promise.all(
      [west, north].map(async ({ store }) => (await store.replica.get('core/keyring'))?.revision),
    );
    expect(revisions[0], 'their keyrings have the same revision').to.equal(revisions[1]);
    await west.write('transit/m/next', 'of the west');
    // A local record whose entry follows that of the swap, although its value was encrypted before.
    const overtaken: Promise<void>[] = [];
    const { replica } = north.store;
    const commit = replica.commit.bind(replica);
    replica.commit = (command) => {
      const result = commit(command);
      if ('replication' in command && command.replication.kind === 'swap')
        overtaken.push(north.write('core/autopilot-note', 'of the north'));
      return result;
    };
    await north.follow(west, 'north');
    await until(() => north.position === west.position);
    expect(await north.read('transit/m/next')).to.equal('of the west');
    expect(overtaken).to.have.length(1);
    await overtaken[0];
    expect(await north.read('core/autopilot-note')).to.equal('of the north');
  });
});
