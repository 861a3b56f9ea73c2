import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { acknowledgeMsMax, acknowledgeMsMin } from '@transitd/replication';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

const plaintext = Buffer.from('data').toString('base64');

describe('a primary whose secondary acknowledges key material', () => {
  let folder = '';
  let east: Site;
  let west: Site;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-acknowledge-'));
    [east, west] = [await Site.open(folder, 'east', { limits: { changes: 8 } }), await Site.open(folder, 'west')];
    await east.replication.enablePrimary();
    await west.followUnsealed(east, 'west');
    await until(() => west.position === east.position);
  });
  after(async () => {
    for (const { node } of [east, west]) await node.stop();
    rmSync(folder, { recursive: true });
  });

  const codeOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'done',
      (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
    );
  const versionUsed = async (site: Site, name: string): Promise<unknown> => {
    const reply = await site.engine.ciphertexts.encrypt(name, { plaintext, mayCreate: false, mayUpdate: true });
    return 'keyVersion' in reply && reply.keyVersion;
  };
  /** Repeats the work until its result is the expected one. */
  const repeat = async (work: () => Promise<unknown>, expected: unknown): Promise<void> => {
    while ((await work()) !== expected) await setImmediate();
  };
  const runTasks = () => east.node.maintenance.runActiveTasks();

  it('uses material at once while the secondary confirms it, which the secondary then has', async () => {
    expect(
      await codeOf(east.replication.material.setting.write({ timeoutMs: acknowledgeMsMin - 1, onTimeout: 'refuse' })),
    ).to.equal('refused');
    await east.replication.material.setting.write({ timeoutMs: acknowledgeMsMin, onTimeout: 'refuse' });
    expect((await east.engine.createKey('k', {})).warnings).to.deep.equal([]);
    expect((await east.engine.rotateKey('k')).key.latestVersion).to.equal(2);
    expect(await versionUsed(east, 'k')).to.equal(2);
    expect(east.replication.material.counts).to.deep.equal({ refused: 0, late: 0, degraded: 0 });
  });

  it('keeps the former version while the secondary does not confirm the new one, and uses it once it does', async () => {
    const before = east.position ?? 0;
    // The secondary is connected, but commits nothing.
    const { replica } = west.store;
    const commit = replica.commit.bind(replica);
    replica.commit = () => new Promise(() => undefined);
    expect(await codeOf(east.engine.rotateKey('k'))).to.equal('outcome_unknown');
    expect(await versionUsed(east, 'k')).to.equal(2);
    await runTasks();
    expect(await versionUsed(east, 'k')).to.equal(2);
    replica.commit = commit;
    west.replication.recover({ wholeState: false });
    await until(() => (west.position ?? 0) > before + 1);
    await repeat(async () => {
      await runTasks();
      return versionUsed(east, 'k');
    }, 3);
    expect(east.replication.material.counts).to.include({ late: 1 });
  });

  it('lets a quarter of the changes wait for a late secondary, and refuses further ones', async () => {
    await east.replication.material.setting.write({ timeoutMs: acknowledgeMsMax, onTimeout: 'refuse' });
    const { replica } = west.store;
    const commit = replica.commit.bind(replica);
    replica.commit = () => new Promise(() => undefined);
    const waiting = ['first', 'second', 'third'].map((name) => codeOf(east.engine.createKey(name, {})));
    expect(await Promise.race(waiting), 'it does not wait for the timeout').to.equal('outcome_unknown');
    expect(await codeOf(east.engine.createKey('fourth', {}))).to.equal('unconfirmed');
    expect(await east.engine.keyExists('fourth')).to.equal(false);
    replica.commit = commit;
    west.replication.recover({ wholeState: false });
    expect((await Promise.all(waiting)).toSorted()).to.deep.equal(['done', 'done', 'outcome_unknown']);
    await repeat(async () => {
      await runTasks();
      return codeOf(versionUsed(east, 'third'));
    }, 'done');
    await east.replication.material.setting.write({ timeoutMs: acknowledgeMsMin, onTimeout: 'refuse' });
  });

  it('makes nothing while the secondary is gone, or uses it all the same, as configured', async () => {
    await west.node.stop();
    await repeat(() => codeOf(east.engine.rotateKey('k')), 'unconfirmed');
    expect(await codeOf(east.engine.createKey('new', {}))).to.equal('unconfirmed');
    expect(await east.engine.keyExists('new')).to.equal(false);
    expect(await versionUsed(east, 'k')).to.equal(3);

    await east.replication.material.setting.write({ timeoutMs: acknowledgeMsMin, onTimeout: 'degrade' });
    const { key, warnings } = await east.engine.rotateKey('k');
    expect(key.latestVersion).to.equal(4);
    expect(warnings).to.have.length(1);
    expect(await versionUsed(east, 'k')).to.equal(4);
    expect(east.replication.material.counts).to.include({ degraded: 1 });
    await east.replication.material.setting.write({ timeoutMs: acknowledgeMsMin, onTimeout: 'refuse' });
  });

  it('has lost no version that it used when the secondary is promoted, and the promoted cluster keeps the setting', async () => {
    west = await west.restarted(east.shares);
    await repeat(() => codeOf(east.engine.rotateKey('k')), 'done');
    const { ciphertext } = (await east.engine.ciphertexts.encrypt('k', { plaintext, mayCreate: false, mayUpdate: true })) as {
      ciphertext: string;
    };
    await east.node.stop();
    await west.replication.promote({ force: true });
    await until(() => west.health === 200);
    const read = await west.engine.ciphertexts.decrypt('k', { ciphertext });
    expect(read).to.include({ plaintext });
    expect(await west.replication.material.setting.read()).to.deep.equal({ timeoutMs: acknowledgeMsMin, onTimeout: 'refuse' });
    // The entry that allows the use of the last version may have been lost; there is no secondary that would have to confirm it.
    await west.node.maintenance.runActiveTasks();
    expect(await versionUsed(west, 'k')).to.equal(5);
    expect((await west.engine.rotateKey('k')).key.latestVersion).to.equal(6);
  });
});
