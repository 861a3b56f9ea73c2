// @live
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { BarrierError } from '@transitd/barrier';
import { StartError } from '@transitd/process';
import { connectEtcd } from '@transitd/storage-etcd';
import { StoreError, supportedLevels, UnsupportedLevel } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { freePort } from '../../../test/cluster/harness/free-port.ts';
import { mountable, mountNote, SmallDisk } from '../../../test/process/small-disk.ts';
import { until } from '../../process/test/until.ts';
import { type LiveEtcd, liveEtcd } from '../../storage-etcd/test/live-etcd.ts';
import { laterRelease } from '../../storage-fsm/test/level/later-release.ts';
import type { Node } from '../src/node.ts';
import { transfersFolder } from '../src/snapshots/snapshots.ts';
import { errorOf, OpenedNodes, onActive, read, reads, stateOf, write } from './opened-nodes.ts';

describe('a node with its records in etcd', () => {
  let etcd: LiveEtcd;
  let nodes: OpenedNodes;
  before(async () => {
    etcd = await liveEtcd();
    nodes = new OpenedNodes();
  });
  afterEach(async () => {
    await nodes.stopAll();
    laterRelease();
  });
  after(async () => {
    await nodes.end();
    await etcd.stop();
  });

  const onEtcd = (prefix: string): object => ({ type: 'etcd', endpoints: [etcd.endpoint], prefix });
  const open = async (prefix: string, { seal = { type: 'shamir' } as object, storage = {} } = {}): Promise<Node> =>
    nodes.open(await nodes.config({ ...onEtcd(prefix), ...storage }, seal));
  const started = async (storage: object): Promise<Node> => nodes.started(await nodes.config(storage));
  const staticSeal = (): object => nodes.staticSeal;

  it('is unsealed by shares; each node takes the active role only when it is unsealed', async () => {
    const [first, second] = [await open('shamir'), await open('shamir')];
    expect(stateOf(first)).to.equal('uninitialized');
    const { shares } = await first.initialize({ secretShares: 1, secretThreshold: 1 });
    await until(() => second.initialized);
    expect([stateOf(first), stateOf(second)]).to.deep.equal(['sealed', 'sealed']);
    const error = await errorOf(second.initialize({ secretShares: 1, secretThreshold: 1 }));
    expect(error).to.be.instanceOf(BarrierError).with.property('code', 'already_initialized');
    const [share = new Uint8Array()] = shares;
    await second.unseal(Buffer.from(share));
    await until(() => stateOf(second) === 'active');
    await first.unseal(Buffer.from(share));
    await until(() => stateOf(first) === 'performance_standby' && second.member?.peers.membershipList.members.length === 2);
    await second.seal();
    await until(() => stateOf(first) === 'active');
    expect(stateOf(second)).to.equal('sealed');
  });

  it('is initialized by one of two simultaneous requests', async () => {
    const pair = [await open('race', { seal: staticSeal() }), await open('race', { seal: staticSeal() })];
    const outcomes = await Promise.all(pair.map((node) => errorOf(node.initialize({ recoveryShares: 1, recoveryThreshold: 1 }))));
    const [lost, ...others] = outcomes.filter((outcome) => outcome !== undefined);
    expect(others).to.deep.equal([]);
    expect(lost).to.be.instanceOf(BarrierError).with.property('code', 'already_initialized');
  });

  it('leaves the active role alone while no other node can take it', async () => {
    const node = await open('alone', { seal: staticSeal() });
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
    await until(() => stateOf(node) === 'active');
    await node.stepDown();
    expect(stateOf(node)).to.equal('active');
  });

  it('has another cluster id after an operator deleted that, and the same records', async () => {
    const node = await open('restored', { seal: staticSeal() });
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
    const before = node.member?.clusterName?.id;
    await node.stop();
    const client = await connectEtcd({ endpoint: etcd.endpoint });
    await client.txn({ compares: [], success: [{ kind: 'delete', key: 'restored/m/cluster' }], failure: [] });
    client.close();
    const again = await open('restored', { seal: staticSeal() });
    await until(() => stateOf(again) === 'active');
    expect(again.member?.clusterName?.id).to.match(/^[0-9a-f-]{36}$/);
    expect(again.member?.clusterName?.id).to.not.equal(before);
    await until(() => again.member?.peers.membershipList.members.length === 1);
  });

  it('raises the feature level once every known node supports the next one', async () => {
    const client = await connectEtcd({ endpoint: etcd.endpoint });
    const set = (key: string, value: string) =>
      client.txn({ compares: [], success: [{ kind: 'put', key, value: Buffer.from(value) }], failure: [] });
    const below = supportedLevels.newest;
    const newest = below + 1;
    await set('raise/m/level', String(below));
    laterRelease(newest);
    const [first, second] = [await started(onEtcd('raise')), await open('raise', { seal: staticSeal() })];
    const both = [first, second];
    const names = both.map(({ config }) => config.node_id).toSorted();
    /** Waits until both nodes know the same nodes, which support this level: alone, each node supports the next one. */
    const known = (members: readonly string[], highest: number): Promise<void> =>
      until(() =>
        both.every(({ member }) => {
          const status = member?.featureLevel.status;
          const found = status?.members.map(({ name }) => name).toSorted();
          return status?.highest === highest && isDeepStrictEqual(found, members);
        }),
      );
    await known(names, newest);
    await set('raise/n/7', 'a record that no node of this cluster has signed');
    await known([...names, 'node 7'], below);
    const refusal = await errorOf(first.member?.featureLevel.raise(newest) ?? Promise.resolve());
    expect((refusal as Error).message).to.match(/: node 7 \(level 1\)\. Upgrade or remove them first$/);
    expect(first.member?.engine.featureLevel).to.equal(below);
    await client.txn({ compares: [], success: [{ kind: 'delete', key: 'raise/n/7' }], failure: [] });
    await known(names, newest);
    expect(await onActive(both, async ({ member }) => member?.featureLevel.raise())).to.equal(newest);
    await until(() => both.every(({ member }) => member?.engine.featureLevel === newest));
    client.close();
  });

  it('does not start on a cluster whose feature level it does not support, and ends when the level rises above that', async () => {
    const client = await connectEtcd({ endpoint: etcd.endpoint });
    const set = (level: string) => {
      const success = [{ kind: 'put', key: 'level/m/level', value: Buffer.from(level) } as const];
      return client.txn({ compares: [], success, failure: [] });
    };
    const fatal: Error[] = [];
    const node = await nodes.open(await nodes.config(onEtcd('level')), (error) => fatal.push(error));
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
    await set('99');
    await until(() => fatal.length > 0 && stateOf(node) !== 'active');
    expect(fatal[0]).to.be.instanceOf(UnsupportedLevel);
    const refusal = await errorOf(open('level', { seal: staticSeal() }));
    expect((refusal as Error).message).to.match(
      /^the cluster below level in etcd is at feature level 99, and this program supports/,
    );
    client.close();
  });

  const backupOf = async (node: Node): Promise<Buffer[]> => (await node.requireMember().snapshots.take()).toArray();

  (mountable ? it : it.skip)(
    `refuses a backup and a restore for which data_dir has no room, and goes on${mountNote}`,
    async () => {
      const disk = new SmallDisk(nodes.folder, { mebibytes: 4 });
      try {
        const node = await nodes.started(await nodes.config(onEtcd('full'), staticSeal(), disk.dataDir()));
        await write(node, 'small');
        const backup = await backupOf(node);
        await until(() => readdirSync(transfersFolder(node.config.data_dir)).length === 0);
        disk.fillTo(0);
        const restore = async () => node.member?.snapshots?.restore(Readable.from(backup), { proved: true });
        for (const attempt of [() => backupOf(node), restore])
          expect(await errorOf(attempt()))
            .to.be.instanceOf(StoreError)
            .with.property('code', 'disk_low');
        await write(node, 'later');
        disk.clear();
        await restore();
        await reads(node, 'small');
        await nodes.stopAll();
      } finally {
        disk.unmount();
      }
    },
  );

  describe('restores backups of both engines:', () => {
    it('one of its own, on every node and with the same authority', async () => {
      const [first, second] = [await started(onEtcd('backup')), await open('backup', { seal: staticSeal() })];
      await until(() => stateOf(second) === 'performance_standby');
      await write(first, 'old');
      const backup = await backupOf(first);
      await write(first, 'new');
      const { id } = first.member?.clusterName ?? {};
      const outcome = await first.member?.snapshots?.restore(Readable.from(backup), { proved: true });
      expect(outcome).to.include({ sealed: false });
      for (const node of [first, second]) await reads(node, 'old');
      await until(() => stateOf(first) === 'active' && stateOf(second) === 'performance_standby');
      expect([first.member?.clusterName?.id, second.member?.clusterName?.id]).to.deep.equal([id, id]);
      await write(first, 'after');
      await reads(second, 'after');
      expect(first.member?.peers.membershipList.members.length).to.equal(2);
    });

    for (const from of ['raft', 'etcd'] as const)
      it(`one of a cluster on ${from} on the other engine, by force`, async () => {
        const on = { raft: { type: 'raft' }, etcd: onEtcd(`restores-of-${from}`) };
        const to = from === 'raft' ? 'etcd' : 'raft';
        const source = await started(on[from]);
        await write(source, 'of the source');
        const backup = await backupOf(source);
        await source.stop();
        const target = await started(on[to]);
        const other = to === 'etcd' ? await nodes.open(await nodes.config(on.etcd)) : undefined;
        await write(target, 'own');
        const refusal = await errorOf(
          target.member?.snapshots?.restore(Readable.from(backup), { proved: true }) ?? Promise.resolve(),
        );
        expect((refusal as Error).message).to.include('was made under another root key');
        expect(await read(target)).to.equal('own');
        const outcome = await target.member?.snapshots?.restore(Readable.from(backup), { proved: false });
        expect(outcome).to.include({ sealed: true });
        const all = other === undefined ? [target] : [target, other];
        for (const node of all) await reads(node, 'of the source');
        await until(() => all.filter((node) => stateOf(node) === 'active').length === 1);
        await until(() => all.filter((node) => stateOf(node) === 'performance_standby').length === all.length - 1);
        const active = all.find((node) => stateOf(node) === 'active') ?? target;
        await write(active, 'after');
        for (const node of all) await reads(node, 'after');
      });
  });

  it('does not start without etcd, or without a file that the configuration names', async () => {
    const port = await freePort('127.0.0.1');
    const away = await errorOf(open('away', { storage: { endpoints: [`http://127.0.0.1:${port}`] } }));
    expect(away).to.be.instanceOf(StartError);
    expect((away as Error).message).to.match(/^storage: etcd at http:\/\/127\.0\.0\.1:\d+ cannot be used: /);
    const noPassword = await errorOf(open('away', { storage: { username: 'u', password_file: '/nowhere' } }));
    expect((noPassword as Error).message).to.equal('storage: /nowhere cannot be read: ENOENT');
    const empty = join(nodes.folder, 'empty-password');
    writeFileSync(empty, '\n');
    const emptyPassword = await errorOf(open('away', { storage: { username: 'u', password_file: empty } }));
    expect((emptyPassword as Error).message).to.equal(`storage.password_file: ${empty} is empty`);
  });
});
