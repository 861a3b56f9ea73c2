import { type LevelRange, supportedLevels, UnsupportedLevel } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { rejection } from '../../../storage-fsm/test/store/store.suite.ts';
import type { EtcdTxn } from '../../src/etcd.ts';
import { EtcdReplica, type EtcdReplicaOptions } from '../../src/replica/etcd-replica.ts';
import { FakeEtcd, type Faults } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';
import { outcomeOf, put } from './fake-nodes.ts';

describe('the feature level of a cluster in etcd', () => {
  const opened: { readonly etcd: FakeEtcd; readonly replica: EtcdReplica }[] = [];
  const open = async (
    server: FakeServer,
    levels: LevelRange,
    { faults = {}, ...options }: Partial<EtcdReplicaOptions> & { readonly faults?: Faults } = {},
  ): Promise<EtcdReplica> => {
    const etcd = new FakeEtcd(server, faults);
    const timing = { heartbeatMs: 3_600_000, leaseSeconds: 600, retryMs: 1, timeoutMs: 120_000, holdMs: 0 };
    const replica = await EtcdReplica.open({ etcd, prefix: 'test', nodeId: opened.length + 1, levels, ...timing, ...options });
    opened.push({ etcd, replica });
    return replica;
  };
  const set = (server: FakeServer, level: string): void => {
    const success = [{ kind: 'put', key: 'test/m/level', value: Buffer.from(level) } as const];
    server.txn({ compares: [], success, failure: [] });
  };
  afterEach(async () => {
    for (const { etcd, replica } of opened.splice(0)) {
      etcd.close();
      await replica.close();
    }
  });

  it('is the newest one of the node that creates it, and holds for a node of a later release', async () => {
    const server = new FakeServer();
    const [first, later] = [await open(server, { oldest: 1, newest: 3 }), await open(server, { oldest: 2, newest: 4 })];
    expect([first.featureLevel, later.featureLevel]).to.deep.equal([3, 3]);
    expect((await open(new FakeServer(), supportedLevels)).featureLevel).to.equal(supportedLevels.newest);
  });

  it('refuses a node that does not support it, older or newer', async () => {
    const server = new FakeServer();
    await open(server, { oldest: 1, newest: 3 });
    for (const levels of [
      { oldest: 1, newest: 2 },
      { oldest: 4, newest: 5 },
    ]) {
      const error = await rejection(open(server, levels));
      expect(error).to.be.instanceOf(UnsupportedLevel);
      expect((error as Error).message).to.match(
        /^the cluster below test in etcd is at feature level 3, and this program supports/,
      );
    }
  });

  it('ends a node that does not support it any more, once, and takes its role away', async () => {
    const server = new FakeServer();
    const ends: UnsupportedLevel[] = [];
    const node = await open(server, { oldest: 1, newest: 3 }, { onUnsupported: (error) => ends.push(error) });
    await node.leads;
    set(server, '4');
    await until(() => ends.length > 0);
    node.mayLead = true;
    expect(await outcomeOf(node.commit(put('a', '1')))).to.equal('not_leader');
    set(server, '5');
    const other = await open(server, { oldest: 1, newest: 5 });
    await other.leads;
    expect(ends).to.have.length(1);
  });

  it('is compared by a node that becomes active, and so by each of its writes', async () => {
    const server = new FakeServer();
    const campaigns: EtcdTxn[] = [];
    const isCampaign = ({ success }: EtcdTxn): boolean =>
      success.some((one) => one.kind === 'put' && one.key === 'test/m/active');
    const fateOf = (txn: EtcdTxn) => {
      if (isCampaign(txn) && campaigns.push(txn) === 1) set(server, '4'); // the copy does not show this yet
      return 'answered' as const;
    };
    const node = await open(server, { oldest: 1, newest: 4 }, { faults: { fateOf } });
    await node.leads;
    expect(campaigns).to.have.length(2);
    expect(node.featureLevel).to.equal(4);
  });

  const raise = (level: number) => ({ raise: level });

  it('is raised by one commit of the active node, which every fresh copy contains, and never falls', async () => {
    const server = new FakeServer();
    set(server, '2');
    const [active, standby] = [await open(server, { oldest: 1, newest: 4 }), await open(server, { oldest: 1, newest: 4 })];
    await active.leads;
    const before = active.status().appliedIndex;
    const { index } = await active.commit(raise(3));
    expect(index).to.be.above(before);
    await standby.fresh();
    expect([active.featureLevel, standby.featureLevel]).to.deep.equal([3, 3]);
    expect(await outcomeOf(active.commit(raise(3)))).to.equal('committed');
    expect(await outcomeOf(active.commit(raise(2)))).to.equal('conflict');
    expect(await outcomeOf(standby.commit(raise(4)))).to.equal('not_leader');
    expect(await outcomeOf(active.commit(put('a', '1')))).to.equal('committed');
    expect(active.featureLevel).to.equal(3);
  });

  it('is not raised from a level that the node does not know', async () => {
    const server = new FakeServer();
    set(server, '2');
    const fateOf = ({ success }: EtcdTxn) => {
      const [first] = success;
      const isRaise = first?.kind === 'txn' && first.txn.compares.some(({ key }) => key === 'test/m/level');
      if (isRaise) set(server, '4'); // the copy does not show this yet
      return 'answered' as const;
    };
    const node = await open(server, { oldest: 1, newest: 5 }, { faults: { fateOf } });
    await node.leads;
    expect(await outcomeOf(node.commit(raise(3)))).to.equal('conflict');
    expect(node.featureLevel).to.equal(4);
  });

  it('is raised or not, on all nodes, when the answer to the raise is lost', async () => {
    for (const fate of ['answer lost', 'request lost'] as const) {
      const server = new FakeServer();
      set(server, '2');
      let isLost = false;
      const fateOf = ({ success }: EtcdTxn) => {
        const [first] = success;
        if (isLost || first?.kind !== 'txn' || !first.txn.compares.some(({ key }) => key === 'test/m/level')) return 'answered';
        isLost = true;
        return fate;
      };
      const [node, other] = [
        await open(server, { oldest: 1, newest: 3 }, { faults: { fateOf } }),
        await open(server, { oldest: 1, newest: 3 }),
      ];
      await node.leads;
      expect(await outcomeOf(node.commit(raise(3)))).to.equal('outcome_unknown');
      expect(await outcomeOf(node.commit(put('a', '1')))).to.equal('committed');
      await other.fresh();
      const level = fate === 'answer lost' ? 3 : 2;
      expect([node.featureLevel, other.featureLevel]).to.deep.equal([level, level]);
    }
  });

  it('ends a node that does not support the new level, and keeps it away', async () => {
    const server = new FakeServer();
    set(server, '2');
    const ends: UnsupportedLevel[] = [];
    const active = await open(server, { oldest: 1, newest: 3 });
    await active.leads;
    await open(server, { oldest: 1, newest: 2 }, { onUnsupported: (error) => ends.push(error) });
    await active.commit(raise(3));
    await until(() => ends.length > 0);
    expect(await rejection(open(server, { oldest: 1, newest: 2 }))).to.be.instanceOf(UnsupportedLevel);
  });
});
