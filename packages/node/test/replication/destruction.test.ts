import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { pauseMs } from '../../src/destruction.ts';
import { Site } from './site.ts';

const hourS = 3600;

describe('versions of keys that are due to be deleted', () => {
  let folder = '';
  const sites: Site[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-destruction-'));
  });
  afterEach(async () => {
    for (const { node } of sites.splice(0)) await node.stop();
    rmSync(folder, { recursive: true });
  });

  let laterMs = 0;
  const clocks = () => ({ wallMs: Date.now() + laterMs, monotonicMs: performance.now() + laterMs });
  const oldestAfterRound = async (site: Site): Promise<number> => {
    await site.node.maintenance.runActiveTasks();
    return (await site.engine.readKey('k')).minAvailableVersion;
  };
  /** Makes a key whose version 1 is due in an hour. */
  const makeKey = async ({ engine }: Site): Promise<void> => {
    await engine.createKey('k', {});
    await engine.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: hourS });
    await engine.rotateKey('k');
  };

  it('are kept for a day after a restore, and after a restart of the node meanwhile', async () => {
    const site = await Site.open(folder, 'east', { clocks });
    sites.push(site);
    await makeKey(site);
    const archive = await site.backup();
    laterMs += 2 * hourS * 1000;
    expect(await oldestAfterRound(site), 'of the state that is replaced').to.equal(2);
    await site.restore(archive);
    await until(() => site.node.active && site.node.services !== undefined);
    expect(await oldestAfterRound(site)).to.equal(0);
    laterMs += pauseMs / 2;
    const again = await site.restarted(site.shares);
    sites.splice(0, 1, again);
    expect(await oldestAfterRound(again)).to.equal(0);
    laterMs += pauseMs / 2;
    expect(await oldestAfterRound(again)).to.equal(2);
  });

  it('are kept for a day after a cluster begins a replication set, and again after a restore of it', async () => {
    const site = await Site.open(folder, 'east', { clocks });
    sites.push(site);
    await site.replication.enablePrimary();
    await makeKey(site);
    const archive = await site.backup();
    laterMs += 2 * hourS * 1000;
    expect(await oldestAfterRound(site)).to.equal(0);
    laterMs += pauseMs;
    expect(await oldestAfterRound(site)).to.equal(2);
    await site.restore(archive);
    await until(() => site.node.active && site.node.services !== undefined);
    expect(await oldestAfterRound(site)).to.equal(0);
    laterMs += pauseMs;
    expect(await oldestAfterRound(site)).to.equal(2);
  });

  it('are kept by a secondary, and for a day after its promotion', async () => {
    const [east, west] = [await Site.open(folder, 'east', { clocks }), await Site.open(folder, 'west', { clocks })];
    sites.push(east, west);
    await east.replication.enablePrimary();
    await makeKey(east);
    await west.followUnsealed(east, 'west');
    await until(() => west.position === east.position);
    await east.node.stop();
    laterMs += 40 * pauseMs;
    expect(await oldestAfterRound(west)).to.equal(0);
    await west.replication.promote({ force: true });
    expect(await oldestAfterRound(west)).to.equal(0);
    laterMs += pauseMs + 1;
    expect(await oldestAfterRound(west)).to.equal(2);
  });
});
