import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ReplicationError } from '@transitd/replication';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

const plaintext = Buffer.from('encrypted under a version that was lost').toString('base64');

async function encrypted({ engine }: Site, key: string): Promise<{ readonly ciphertext: string }> {
  const result = await engine.ciphertexts.encrypt(key, { plaintext, mayCreate: false, mayUpdate: true });
  if (!('ciphertext' in result)) throw new TypeError('one plaintext has one ciphertext');
  return { ciphertext: result.ciphertext };
}

describe('a key that was lost in a promotion', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-salvage-'));
  const sites: Site[] = [];
  after(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });

  it('is restored under another name from the kept state, by the new primary', async () => {
    const [east, west] = [await Site.open(folder, 'east'), await Site.open(folder, 'west')];
    sites.push(east, west);
    await east.replication.enablePrimary();
    await east.engine.createKey('k', {});
    await west.followUnsealed(east, 'west');
    await until(() => west.position === east.position);
    await east.replication.revoke('west');
    await east.engine.rotateKey('k');
    await east.store.barrier.rotation.rotate();
    await east.engine.createKey('only-here', {});
    const [ofVersion, ofKey] = [await encrypted(east, 'k'), await encrypted(east, 'only-here')];
    await until(() => west.replication.primary?.connection !== 'connected');
    await west.replication.promote({ force: true });
    await east.replication.demote();
    await east.follow(west, 'east');
    await until(() => east.replication.diverged.newest !== undefined && east.position === west.position);
    const archive = east.replication.diverged.newest ?? '';

    const salvage = async (source: string, name: string, snapshot = archive): Promise<void> => {
      const opened = await west.replication.diverged.open(snapshot);
      await west.node.member?.snapshots?.reading(opened, (read) => west.engine.transfers.salvageKey(source, name, read));
    };
    const refusalOf = (task: Promise<unknown>): Promise<unknown> => task.catch((error: Error) => error.message);
    for (const name of [archive, `../diverged/${archive}`, '../../east/keyring', ''])
      expect(await salvage('k', 'k-lost', name).catch((error: unknown) => error)).to.be.instanceOf(ReplicationError);
    mkdirSync(join(folder, 'west/diverged'), { recursive: true });
    cpSync(join(folder, 'east/diverged', archive), join(folder, 'west/diverged', archive));

    await salvage('k', 'k-lost');
    await salvage('only-here', 'brought-back');
    expect(await west.engine.ciphertexts.decrypt('k-lost', ofVersion)).to.include({ plaintext });
    expect(await west.engine.ciphertexts.decrypt('brought-back', ofKey)).to.include({ plaintext });
    expect((await west.engine.readKey('k-lost')).latestVersion).to.equal(2);
    expect((await west.engine.readKey('k')).latestVersion, 'the key of the new primary').to.equal(1);
    expect(await refusalOf(salvage('k', 'k-lost'))).to.equal('a key of this name already exists');
    expect(await refusalOf(salvage('never', 'new'))).to.equal('the snapshot has no such key in this mount');
    expect(await refusalOf(salvage('k', 'no/name'))).to.equal('invalid key name');
    expect(readdirSync(join(folder, 'west/transfers')), 'no decrypted or unpacked state is left').to.deep.equal([]);

    west.shares = east.shares;
    await west.rekey();
    expect(await refusalOf(salvage('k', 'late'))).to.include('made under another root key');
  });
});
