import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { RequestError } from '@transitd/http';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

describe('a restore in a replication set', function () {
  this.timeout(240_000);
  const folder = mkdtempSync(join(tmpdir(), 'transitd-restored-'));
  const sites: Site[] = [];
  after(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });

  it('is refused; a cluster that has left the set is restored, and begins a new set', async () => {
    const [east, west] = [await Site.open(folder, 'east'), await Site.open(folder, 'west')];
    sites.push(east, west);
    await east.replication.enablePrimary();
    await east.write('transit/m/kept', 'in the backup');
    await west.follow(east, 'west');
    await until(() => west.node.status.state === 'sealed');
    await west.unseal(east.shares);
    const archive = Buffer.concat((await (await east.node.snapshots?.take())?.toArray()) ?? []);
    await east.write('transit/m/late', 'after the backup');
    await until(() => west.position === east.position);

    const restore = async (site: Site, proved: boolean): Promise<unknown> =>
      site.node.snapshots?.restore(Readable.from([archive]), { proved }).catch((error: unknown) => error);
    for (const site of [east, west])
      for (const proved of [true, false])
        expect(await restore(site, proved))
          .to.be.instanceOf(RequestError)
          .with.property('message')
          .that.includes('disable replication on the primary');
    expect(await east.read('transit/m/late')).to.equal('after the backup');

    await east.replication.disablePrimary();
    const term = () => east.store.barrier.rotation.keyStatus().term;
    const before = term();
    expect(await restore(east, true)).to.include({ sealed: false });
    expect(await east.read('transit/m/late')).to.equal(undefined);
    expect(term(), 'a key that has encrypted nothing before').to.be.greaterThan(before);
    await east.replication.enablePrimary();
    expect(east.replication.secondaries, 'of the former set').to.deep.equal([]);

    // West still belongs to the former set, with the records that the restore has undone.
    await west.replication.promote({ force: true });
    await west.replication.disablePrimary();
    await west.follow(east, 'west');
    await until(() => west.node.eligibility.replicationStatus?.epoch !== undefined && west.position === east.position);
    expect(await west.read('transit/m/kept')).to.equal('in the backup');
    expect(await west.read('transit/m/late')).to.equal(undefined);
    await east.write('transit/m/next', 'of the new set');
    await until(() => west.position === east.position);
    expect(await west.read('transit/m/next')).to.equal('of the new set');
  });
});
