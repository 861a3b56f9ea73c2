import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acknowledgeMsMin } from '@transitd/replication';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

describe('a restore in a replication set', () => {
  let folder = '';
  const sites: Site[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-restored-'));
  });
  afterEach(async () => {
    for (const { node } of sites.splice(0)) await node.stop();
    rmSync(folder, { recursive: true });
  });

  const restore = (site: Site, archive: Buffer, proved = true): Promise<unknown> =>
    site.restore(archive, { proved }).catch((error: unknown) => String(error));
  const isInSync = (west: Site, east: Site): boolean => west.position !== undefined && west.position === east.position;

  it('takes effect on the primary; its secondaries receive the restored state', async () => {
    const [east, west] = [await Site.open(folder, 'east'), await Site.open(folder, 'west')];
    sites.push(east, west);
    await east.write('transit/m/kept', 'in the backup');
    const archive = await east.backup(); // before the set: it has neither the secondary nor the setting
    await east.replication.enablePrimary();
    await west.followUnsealed(east, 'west');
    const acknowledge = { timeoutMs: acknowledgeMsMin, onTimeout: 'refuse' } as const;
    await east.replication.material.setting.write(acknowledge);
    await east.store.barrier.rotation.rotate();
    await east.write('transit/m/late', 'after the backup');
    await until(() => isInSync(west, east));
    expect(await restore(west, archive)).to.include('only the primary');

    const [terms, states] = [await keysOf(east), east.replication.statesSent];
    expect(await restore(east, archive)).to.include({ sealed: false });
    expect(await east.read('transit/m/late')).to.equal(undefined);
    expect(await east.read('transit/m/kept')).to.equal('in the backup');
    expect(terms, 'the newest key has encrypted nothing before').not.to.include((await keysOf(east)).at(-1));
    expect(await east.replication.material.setting.read()).to.deep.equal(acknowledge);
    await east.write('transit/m/next', 'after the restore');
    await until(() => isInSync(west, east));
    expect(east.replication.statesSent).to.equal(states + 1);
    for (const site of [east, west]) {
      expect(await site.read('transit/m/late')).to.equal(undefined);
      expect(await site.read('transit/m/next')).to.equal('after the restore');
      expect(await site.read('core/cluster-authority'), 'a local record').to.be.a('string');
    }
    expect(east.replication.secondaries.map(({ secondary }) => secondary)).to.deep.equal(['west']);
    const digests = () => [east, west].map(({ node }) => node.eligibility.replicationStatus?.digest);
    await until(() => digests()[0] !== undefined && digests()[0] === digests()[1]);

    const stale = await east.backup();
    await east.rekey();
    for (const proved of [true, false])
      expect(await restore(east, stale, proved)).to.include(proved ? 'another root key' : 'end the replication set');
    expect(await east.read('transit/m/next')).to.equal('after the restore');
  });

  it('is reported by a promotion that continues with the state from before', async () => {
    const [east, west] = [await Site.open(folder, 'east'), await Site.open(folder, 'west')];
    sites.push(east, west);
    await east.replication.enablePrimary();
    await west.followUnsealed(east, 'west');
    const archive = await east.backup();
    await east.write('transit/m/late', 'after the backup');
    await until(() => isInSync(west, east));
    await west.counted();

    const { replica } = west.store;
    const commit = replica.commit.bind(replica);
    replica.commit = () => new Promise(() => undefined);
    expect(await restore(east, archive)).to.include({ sealed: false });
    await until(() => west.replication.primary?.missesRestore === true);
    replica.commit = commit;
    expect(await west.replication.promote({ force: true })).to.include({ missesRestore: true, lossless: false });
    expect(await west.read('transit/m/late'), 'nothing of the restored state').to.equal('after the backup');
    await until(() => west.replication.reports.promotion({ epochs: west.epochs }) !== undefined);
    expect(west.replication.reports.promotion({ epochs: west.epochs })).to.include({ missesRestore: true });
  });

  it('keeps the seals of clusters that each have their own, and the recovery shares', async () => {
    const [east, west] = [await Site.openWithStaticSeal(folder, 'east'), await Site.openWithStaticSeal(folder, 'west')];
    sites.push(east, west);
    await east.write('transit/m/kept', 'in the backup');
    const archive = await east.backup(); // without the record of the recovery shares
    await east.replication.enablePrimary();
    await west.follow(east, 'west');
    await until(() => isInSync(west, east) && west.node.active);
    await east.store.barrier.rotation.rotate();
    await east.write('transit/m/late', 'after the backup');
    expect(await restore(east, archive, false)).to.include({ sealed: false });
    await east.rekey();
    await until(() => isInSync(west, east) && west.node.active);
    for (const site of sites.splice(0)) sites.push(await site.restarted([]));
    for (const site of sites) {
      await until(() => site.node.active);
      expect([await site.read('transit/m/kept'), await site.read('transit/m/late')]).to.deep.equal(['in the backup', undefined]);
    }
  });
});

/** Returns the keys of a keyring, newest last. */
async function keysOf({ store }: Site): Promise<string[]> {
  await store.barrier.transfer.rootKey(); // loads the keyring that is stored
  const keyring = Buffer.from(store.barrier.sharedKeyring.memory ?? new SharedArrayBuffer(0));
  const keys: string[] = [];
  for (let at = 5; at < keyring.length; at += 52) keys.push(keyring.subarray(at + 20, at + 52).toString('hex'));
  return keys;
}
