import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

describe('two clusters with a fence', () => {
  let folder = '';
  let sites: Site[] = [];
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-fence-'));
    sites = [await Site.open(folder, 'east'), await Site.open(folder, 'west')];
  });
  afterEach(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });

  const pair = async (): Promise<readonly [east: Site, west: Site]> => {
    const [east, west] = sites;
    if (east === undefined || west === undefined) throw new TypeError('there are two sites');
    await east.replication.enablePrimary({ fenceMs: 5_000 });
    await west.follow(east, 'west');
    await until(() => west.node.status.state === 'sealed');
    return [east, west];
  };
  const errorOf = (work: Promise<unknown>): Promise<unknown> => work.then(() => undefined).catch((error: unknown) => error);

  it('refuse writes only after a secondary that could be promoted is gone, and until it is revoked', async () => {
    const [east, west] = await pair();
    expect(east.replication.fence.status, 'a sealed secondary has not been counted yet').to.include({ state: 'open' });
    await east.write('transit/first', 'one');
    await west.unseal(east.shares);
    await until(() => east.replication.fence.status.secondary === 'west');
    await until(() => east.replication.fence.status.state === 'open');
    await east.write('transit/second', 'two');
    await until(() => west.position === east.position);

    const archive = await east.backup();
    await west.node.stop();
    await until(() => east.replication.fence.status.state === 'closed');
    expect(await errorOf(east.restore(archive)), 'it replaces replicated records').to.include({ code: 'fenced' });
    const refused = await errorOf(east.write('transit/third', 'three'));
    expect(refused).to.include({ code: 'fenced' });
    expect(String(refused)).to.match(/the secondary west has not answered for \d+ ms, and fence_after is 5000 ms/);
    await east.replication.revoke('west');
    await east.write('transit/third', 'three');
  });

  it('refuse writes of a primary that starts again without a cluster port', async () => {
    const [east] = await pair();
    await east.node.stop();
    const again = await Site.reopenWithoutPort(folder, 'east', east.shares);
    sites.push(again);
    const refused = await errorOf(again.write('transit/first', 'one'));
    expect(refused).to.include({ code: 'fenced' });
    expect(String(refused)).to.include('without cluster_addr no secondary can reach this node');
  });

  it('begin a new set without the secondaries of the former one', async () => {
    const [east, west] = await pair();
    await west.unseal(east.shares);
    await until(() => east.replication.fence.status.secondary === 'west');
    await east.replication.disablePrimary();
    await east.replication.enablePrimary({ fenceMs: 5_000 });
    expect(east.replication.secondaries).to.deep.equal([]);
    await until(() => east.replication.fence.status.state === 'open');
    await east.write('transit/first', 'one');
  });

  it('promote only when the primary has stopped, also if they are forced', async () => {
    const [east, west] = await pair();
    await west.unseal(east.shares);
    await until(() => east.replication.fence.status.state === 'open' && west.position === east.position);
    let written = 0;
    let isPromoted = false;
    const afterwards: unknown[] = [];
    const load = async (): Promise<void> => {
      for (; ; written++) {
        const wasPromoted = isPromoted;
        const error = await errorOf(east.write('transit/key', String(written)));
        if (wasPromoted) afterwards.push(error);
        if (afterwards.length > 0) return;
        await setImmediate();
      }
    };
    const loaded = load();
    await until(() => written > 10);
    const promoted = await west.replication.promote({ force: true });
    isPromoted = true;
    expect(promoted).to.include({ lossless: false });
    await loaded;
    expect(afterwards[0], 'the former primary accepts nothing any more').to.be.instanceOf(Error);
    await west.write('transit/key', 'from the new primary');
    await until(() => east.store.replica.status().ready && east.health === 472);
  });
});
