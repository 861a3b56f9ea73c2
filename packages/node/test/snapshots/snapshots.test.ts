import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { transfersFolder } from '../../src/snapshots/snapshots.ts';
import { Site } from '../replication/site.ts';

describe('the files of backups and restores', () => {
  let folder = '';
  let site: Site;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-transfers-'));
    site = await Site.open(folder, 'n1');
  });
  afterEach(async () => {
    await site.node.stop();
    rmSync(folder, { recursive: true });
  });

  const transfers = (): string => transfersFolder(join(folder, 'n1'));
  /** Replaces each file by a folder, which the removal of a file refuses: as a disk that has become read-only does. */
  const makeUnremovable = (): void => {
    for (const name of readdirSync(transfers())) {
      rmSync(join(transfers(), name), { recursive: true });
      mkdirSync(join(transfers(), name));
    }
  };
  const reasonFor = (task: Promise<unknown>): Promise<string> =>
    task.then(
      () => 'done',
      (error: unknown) => String(error),
    );

  it('that cannot be removed end neither the process nor the right to take more backups', async () => {
    for (let taken = 0; taken < 5; taken += 1) {
      const archive = await site.store.snapshots.take();
      makeUnremovable();
      const closed = new Promise((resolve) => archive.once('close', resolve));
      archive.destroy();
      await closed;
    }
  });

  it('that cannot be removed do not hide why a restore has failed', async () => {
    const archive = await site.backup();
    await until(() => readdirSync(transfers()).length === 0);
    const broken = async function* () {
      yield archive.subarray(0, archive.length - 1);
      await until(() => readdirSync(transfers()).length > 0);
      makeUnremovable();
      throw new Error('the caller has gone');
    };
    expect(await reasonFor(site.store.snapshots.restore(broken(), { proved: true }))).to.include('the caller has gone');
  });

  it('that cannot be created do not block later restores', async () => {
    const archive = await site.backup();
    rmSync(transfers(), { recursive: true });
    writeFileSync(transfers(), 'a file, not a folder');
    for (let tries = 0; tries < 2; tries += 1)
      expect(await reasonFor(site.restore(archive, { proved: true }))).to.include('EEXIST');
    rmSync(transfers());
    expect(await reasonFor(site.restore(archive, { proved: true }))).to.equal('done');
  });
});
