import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acknowledgeMsMin } from '@transitd/replication';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

const plaintext = Buffer.from('data').toString('base64');

describe('a secondary that has received its state and not connected with it', () => {
  let folder = '';
  const sites: Site[] = [];
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-uncounted-'));
  });
  after(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });

  for (const [since, isInState] of [
    ['before', true],
    ['after', false],
  ] as const)
    it(`is not promoted without force where key material is acknowledged since ${since} its state: it lacks used versions`, async () => {
      const [east, west] = [await Site.open(folder, `east-${since}`), await Site.open(folder, `west-${since}`)];
      sites.push(east, west);
      await east.replication.enablePrimary();
      const acknowledge = () => east.replication.material.setting.write({ timeoutMs: acknowledgeMsMin, onTimeout: 'refuse' });
      if (isInState) await acknowledge();
      await east.engine.createKey('k', {});
      await west.follow(east, 'west');
      await until(() => west.node.status.state === 'sealed');
      if (!isInState) await acknowledge();
      await east.engine.rotateKey('k');
      const encrypted = await east.engine.ciphertexts.encrypt('k', { plaintext, mayCreate: false, mayUpdate: true });
      expect(encrypted, 'it waits for no secondary yet').to.include({ keyVersion: 2 });
      await east.node.stop();
      await west.unseal(east.shares);
      let refusal = '';
      while (!refusal.includes('may have used key versions that it lacks'))
        refusal = await west.replication.promote({ force: false }).then(
          () => expect.fail('it was promoted'),
          (error: Error) => error.message,
        );
      expect(await west.replication.promote({ force: true })).to.include({ lossless: false });
      const { ciphertext } = encrypted as { ciphertext: string };
      await until(() => west.health === 200);
      const read = await west.engine.ciphertexts.decrypt('k', { ciphertext }).catch((error: Error) => error.message);
      expect(read, 'which is what the refusal is for').to.include('version is too new');
    });

  it('counts although that could not be stored at first, without a new connection', async () => {
    const [east, west] = [await Site.open(folder, 'east-stored'), await Site.open(folder, 'west-stored')];
    sites.push(east, west);
    await east.replication.enablePrimary();
    await west.followUnsealed(east, 'west');
    const { store } = west.store.barrier;
    const commit = store.commit.bind(store);
    let failures = 0;
    store.commit = (transaction) => {
      const counts = transaction.writes.some(({ value }) => value?.toString().includes('"isCounted":true'));
      if (!counts || failures === 2) return commit(transaction);
      failures += 1;
      return Promise.reject(new StoreError('busy', 'the write was stopped'));
    };
    await west.counted();
    expect(failures).to.equal(2);
  });
});
