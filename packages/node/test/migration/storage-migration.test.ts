// @live
import { randomBytes } from 'node:crypto';
import { readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '@transitd/configuration';
import { StartError } from '@transitd/process';
import { connectEtcd, EtcdReplica } from '@transitd/storage-etcd';
import { StorageDamaged, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { mountable, mountNote, SmallDisk } from '../../../../test/process/small-disk.ts';
import { expectCode, run } from '../../../../test/process/transitd-command.ts';
import { until } from '../../../process/test/until.ts';
import { type LiveEtcd, liveEtcd } from '../../../storage-etcd/test/live-etcd.ts';
import { laterRelease } from '../../../storage-fsm/test/level/later-release.ts';
import { endedBy, etcdSource } from '../../src/migration/etcd-side.ts';
import { migrateStorage } from '../../src/migration/storage-migration.ts';
import { errorOf, OpenedNodes, reads, stateOf, write } from '../opened-nodes.ts';

describe('a migration between engines', () => {
  let etcd: LiveEtcd;
  let nodes: OpenedNodes;
  before(async () => {
    etcd = await liveEtcd();
    nodes = new OpenedNodes();
  });
  afterEach(() => nodes.stopAll());
  after(async () => {
    await nodes.end();
    await etcd.stop();
  });

  const onRaft = (dataDir?: string): Promise<Config> => nodes.config({ type: 'raft' }, nodes.staticSeal, dataDir);
  const onEtcd = (prefix: string): Promise<Config> => nodes.config({ type: 'etcd', endpoints: [etcd.endpoint], prefix });
  const migrate = (from: Config, to: Config, dryRun = false) => migrateStorage({ from, to, dryRun, onProgress: () => undefined });
  const refusal = async (from: Config, to: Config, dryRun = true): Promise<string> => {
    const error = await errorOf(migrate(from, to, dryRun));
    expect(error).to.be.instanceOf(StartError);
    return (error as Error).message;
  };
  const keysBelow = async (prefix: string): Promise<readonly string[]> => {
    const client = await connectEtcd({ endpoint: etcd.endpoint });
    const { rows } = await client.range({ key: `${prefix}/`, end: `${prefix}0` });
    client.close();
    return rows.map(({ key }) => key);
  };

  it('moves a cluster to etcd and back, with all that its nodes wrote', async () => {
    const [raft, first, second, back] = [await onRaft(), await onEtcd('moved'), await onEtcd('moved'), await onRaft()];
    const former = await nodes.started(raft);
    await write(former, 'of Raft');
    const formerId = former.member?.clusterName?.id;
    expect(await refusal(raft, first)).to.include('stop the node first');
    await nodes.stopAll();

    const checked = await migrate(raft, first, true);
    expect(await keysBelow('moved')).to.deep.equal([]);
    expect(await migrate(raft, first)).to.deep.include({ records: checked.records, digest: checked.digest });
    const [active, standby] = [await nodes.open(first), await nodes.open(second)];
    await until(() => [active, standby].map(stateOf).sort().join() === 'active,performance_standby');
    for (const node of [active, standby]) await reads(node, 'of Raft');
    expect(active.member?.clusterName?.id).to.not.equal(formerId);
    await write([active, standby], 'of etcd');
    expect(await refusal(first, back)).to.include('a node of the cluster below moved in etcd runs');
    await nodes.stopAll();
    expect(await refusal(raft, first)).to.match(/^etcd has \d+ records below moved/);

    await migrate(first, back);
    expect(await refusal(first, back)).to.include('holds a node already');
    const last = await nodes.open(back);
    await until(() => stateOf(last) === 'active');
    await reads(last, 'of etcd');
    await write(last, 'of Raft again');
    expect(last.member?.replica.status().valuesWritten).to.be.at.least(checked.records);
  });

  it('goes on after it was interrupted before its last write', async () => {
    const [raft, target] = [await onRaft(), await onEtcd('interrupted')];
    await write(await nodes.started(raft), 'of Raft');
    await nodes.stopAll();
    const client = await connectEtcd({ endpoint: etcd.endpoint });
    const left = { kind: 'put', key: 'interrupted/r1/test/left', value: Buffer.from('staged before') } as const;
    await client.txn({ compares: [], success: [left], failure: [] });
    client.close();
    await migrate(raft, target);
    expect(await keysBelow('interrupted')).to.not.include('interrupted/r1/test/left');
    await reads(await nodes.open(target), 'of Raft');
  });

  it('succeeds if only the leftovers of earlier attempts could not be deleted after its last write', async () => {
    const [raft, target] = [await onRaft(), await onEtcd('leftovers')];
    await write(await nodes.started(raft), 'of Raft');
    await nodes.stopAll();
    const { clearRestores } = EtcdReplica.prototype;
    EtcdReplica.prototype.clearRestores = async () => {
      throw new StoreError('busy', 'the records of a restore could not be read');
    };
    try {
      expect((await migrate(raft, target)).records).to.be.above(0);
    } finally {
      EtcdReplica.prototype.clearRestores = clearRestores;
    }
  });

  it('reports that a node of the source in etcd has written meanwhile', async () => {
    const source = await onEtcd('written');
    const { storage } = source;
    if (storage.type !== 'etcd') throw new TypeError('the source is not in etcd');
    await write(await nodes.started(source), 'before');
    await nodes.stopAll();
    const error = await errorOf(
      etcdSource(storage, async () => {
        const node = await nodes.open(source);
        await until(() => stateOf(node) === 'active');
        await write(node, 'meanwhile');
        await nodes.stopAll();
      }),
    );
    expect(error).to.be.instanceOf(StartError);
    expect((error as Error).message).to.include('has started meanwhile');
  });

  (mountable ? it : it.skip)(`ends with one line and exit code 74 when the new data_dir fails${mountNote}`, async () => {
    const storage = { type: 'etcd', endpoints: [etcd.endpoint], prefix: 'large' };
    const node = await nodes.started(await nodes.config(storage));
    for (let number = 0; number < 12; number++) await write(node, randomBytes(400_000).toString('hex'), `large-${number}`);
    await nodes.stopAll();
    const disk = new SmallDisk(nodes.folder, { mebibytes: 8 });
    try {
      const raft = await nodes.settings({ type: 'raft' }, nodes.staticSeal, disk.dataDir());
      const [from, to] = [join(nodes.folder, 'from.json'), join(nodes.folder, 'to.json')];
      writeFileSync(from, JSON.stringify(await nodes.settings(storage)));
      writeFileSync(to, JSON.stringify({ ...raft, raft: { disk_reserve: 0 } }));
      const { stderr } = expectCode(await run(['migrate-storage', '--from', from, '--to', to]), 74);
      // Two stores are on this disk, and each names the error in the words of its library.
      expect(stderr, stderr).to.match(/^transitd: .*(ENOSPC|No space left on device).*\n$/);
    } finally {
      disk.unmount();
    }
  });

  it('says how to go on after a write to etcd that failed, or whose outcome is unknown', () => {
    const unknown = endedBy(new StoreError('outcome_unknown', 'etcd did not answer'), 'demo').message;
    expect(unknown).to.match(/may have taken effect below demo in etcd\. Run it again, into another storage\.prefix if it finds/);
    const refused = endedBy(new StoreError('not_leader', 'this node is not the active node'), 'demo').message;
    expect(refused).to.equal(
      'the migration has ended, and no record has taken effect. Run it again: this node is not the active node',
    );
  });

  it('refuses what it cannot move, and changes nothing', async () => {
    const [raft, target] = [await onRaft(), await onEtcd('refused')];
    expect(await refusal(raft, await onRaft())).to.include('both configurations have storage.type raft');
    expect(await refusal(target, raft)).to.include('etcd has no records below refused');
    expect(await refusal(raft, target)).to.include('holds no node');
    laterRelease(2);
    await write(await nodes.started(raft), 'of Raft');
    await nodes.stopAll();
    const away = await nodes.config({ type: 'etcd', endpoints: ['http://127.0.0.1:9'], prefix: 'away' });
    expect(await refusal(raft, away)).to.match(/^storage: etcd at .* cannot be used: /);
    const client = await connectEtcd({ endpoint: etcd.endpoint });
    const level = { kind: 'put', key: 'lower/m/level', value: Buffer.from('1') } as const;
    await client.txn({ compares: [], success: [level], failure: [] });
    client.close();
    expect(await refusal(raft, await onEtcd('lower'), false)).to.match(/is at feature level 2, and lower in etcd at 1: /);
    laterRelease();
    expect((await keysBelow('lower')).filter((key) => key.startsWith('lower/r'))).to.deep.equal([]);
    const [log = ''] = readdirSync(raft.data_dir, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('/log'));
    for (const file of readdirSync(join(raft.data_dir, log))) truncateSync(join(raft.data_dir, log, file), 10);
    expect(await errorOf(migrate(raft, target))).to.be.instanceOf(StorageDamaged);
    expect(await keysBelow('refused')).to.deep.equal([]);
  });
});
