import { createReadStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

describe('a former primary that returns', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-diverged-'));
  const sites: Site[] = [];
  after(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });

  it('keeps its own state before that of its successor replaces it', async () => {
    const [east, west] = [await Site.open(folder, 'east'), await Site.open(folder, 'west')];
    sites.push(east, west);
    await east.replication.enablePrimary();
    await east.write('transit/m/ver/k/1', 'first');
    await east.write('access/token/revoked', 'token');
    for (let at = 0; at < 60; at++) await east.write('transit/m/often', String(at)); // its indexes are ahead of the log of west
    await west.followUnsealed(east, 'west');
    await until(() => west.position === east.position && west.replication.primary?.lag.ms !== undefined);

    await east.replication.revoke('west');
    await until(() => west.replication.primary?.connection !== 'connected');
    await east.write('transit/m/ver/k/2', 'second');
    await east.store.barrier.store.commit({ conditions: [], writes: [{ path: 'access/token/revoked', value: null }] });
    const promotion = await west.replication.promote({ force: true });
    expect(promotion).to.include({ lossless: false, missing: 0 });
    expect(promotion.lag).to.include({ entries: 0 }).and.to.have.property('ms').that.is.a('number');
    expect(promotion.primaryPosition).to.equal(promotion.from.index);
    expect(promotion.silentMs).to.be.greaterThan(0);
    await west.write('transit/m/ver/other/1', 'of the successor');

    const backup = await west.node.member?.snapshots?.take();
    expect(Buffer.concat((await backup?.toArray()) ?? []).length, 'a backup of a promoted cluster').to.be.greaterThan(1_000);

    const { position } = east;
    await east.replication.demote();
    await east.follow(west, 'east');
    await until(() => east.node.eligibility.replicationStatus?.epoch === 2 && east.position === west.position);
    expect(await east.read('transit/m/ver/k/2')).to.equal(undefined);
    expect(await east.read('access/token/revoked'), 'a revocation that only the former primary had').to.equal('token');

    const kept = join(folder, 'east/diverged', east.replication.diverged.newest ?? '');
    const report = JSON.parse(readFileSync(kept.replace(/snap$/, 'json'), 'utf8'));
    expect(report).to.deep.include({ point: promotion.from.index, deleted: [{ path: 'access/token/revoked' }] });
    const written: readonly string[] = report.written.map(({ path }: { path: string }) => path);
    // The active node also writes a canary, and which uses of keys are recorded, from time to time.
    expect(written.filter((path) => path !== 'core/canary' && path !== 'core/usage')[0]).to.equal('transit/m/ver/k/2');
    expect(report)
      .to.have.property('position')
      .that.is.greaterThan(position ?? 0);

    // Both clusters keep what they reported, also over a restart.
    for (const [at, { shares }] of [
      [0, east],
      [1, east],
    ] as const)
      sites[at] = await (sites[at] ?? east).restarted(shares);
    const [eastAgain, westAgain] = sites as [Site, Site];
    const promotionOf = ({ replication, node }: Site) =>
      node.eligibility.replication && replication.reports.promotion(node.eligibility.replication);
    await until(() => promotionOf(westAgain) !== undefined);
    const { from, ...known } = promotion;
    expect(promotionOf(westAgain)).to.deep.include({ ...known, position: from.index, isForced: true });
    expect(promotionOf(eastAgain)).to.equal(undefined);
    await until(() => eastAgain.replication.reports.divergence !== undefined);
    expect(eastAgain.replication.reports.divergence).to.include({
      ...{ node: 'east', archive: eastAgain.replication.diverged.newest, point: promotion.from.index },
      ...{ keyVersions: 1, tokens: 0, revokedTokens: 1, deleted: 1 },
    });
    expect(westAgain.replication.reports.divergence).to.equal(undefined);

    const lab = await Site.open(folder, 'lab');
    sites.push(lab);
    await lab.node.member?.snapshots?.restore(createReadStream(kept), { proved: false });
    await until(() => lab.node.status.state === 'sealed');
    await lab.unseal(east.shares);
    expect(await lab.read('transit/m/ver/k/2'), 'what was lost can be read from the kept state').to.equal('second');
  });
});
