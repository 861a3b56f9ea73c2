import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { MountError } from '../../src/mounts/mounts.ts';
import { Site } from './site.ts';

const request = { plaintext: Buffer.from('x').toString('base64'), mayCreate: false, mayUpdate: true };

describe('a secondary whose whole state is replaced', () => {
  let folder = '';
  const sites: Site[] = [];
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-replaced-'));
  });
  after(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });
  const open = async (name: string): Promise<Site> => {
    const site = await Site.openWithStaticSeal(folder, name);
    sites.push(site);
    return site;
  };
  const mountsOf = ({ node }: Site) => {
    if (node.services === undefined) throw new Error('the services are not loaded');
    return node.services.mounts;
  };
  const encrypted = async (site: Site, mount: string): Promise<string> =>
    JSON.stringify(await mountsOf(site).engines.get(mount)?.ciphertexts.encrypt('k', request));

  it('closes mounts that are gone, and reads everything else again, without being unsealed again', async () => {
    const [east, west] = [await open('east'), await open('west')];
    await mountsOf(east).enable({ path: 'gone', type: 'transit' });
    for (const path of ['gone', 'transit']) await mountsOf(east).engines.get(path)?.createKey('k', {});
    await east.replication.enablePrimary();
    const unsealed = new Promise<void>((resolve) => {
      west.store.barrier.onStateChange(({ sealed }) => !sealed && resolve());
    });
    await west.follow(east, 'west');
    await unsealed;
    await until(() => west.position === east.position && west.node.services !== undefined && west.node.active);
    // In the caches of the secondary now: both mounts, and the first version of each key.
    for (const path of ['gone', 'transit']) expect(await encrypted(west, path)).to.contain('"svc:v1:');
    const [mounts, gone] = [mountsOf(west), mountsOf(west).engines.get('gone')];

    await east.replication.revoke('west'); // so that the changes come with the whole state, not one by one
    await until(() => west.replication.primary?.connection !== 'connected');
    await mountsOf(east).disable('gone');
    await mountsOf(east).engines.get('transit')?.rotateKey('k');
    const { appliedIndex } = east.store.replica.status();
    await until(() => east.store.replica.status().flushedIndex >= appliedIndex);
    let pathsAtOnce: readonly string[] | undefined;
    const replaced = new Promise<void>((resolve) => {
      west.store.barrier.store.watch('core/mounts', (changes) => {
        if (changes !== 'everything') return;
        expect(mounts.changing, 'requests wait for the mounts from the apply on').to.not.equal(undefined);
        void mounts.changing?.then(() => {
          pathsAtOnce = mounts.list.map(({ path }) => path);
          resolve();
        });
      });
    });
    west.replication.recover({ wholeState: true });
    await west.replication.updatePrimary(await east.replication.issueToken({ secondary: 'west' }));
    await replaced;

    expect(pathsAtOnce).to.deep.equal(['transit']);
    expect(mountsOf(west), 'the same services').to.equal(mounts);
    const refusal = await gone?.ciphertexts.encrypt('k', request).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(MountError).with.property('code', 'mount_removed');
    expect(await encrypted(west, 'transit'), 'the new version').to.contain('"svc:v2:');
  });
});
