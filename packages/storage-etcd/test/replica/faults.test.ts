import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { storeSuite } from '../../../storage-fsm/test/store/store.suite.ts';
import { EtcdError, type EtcdTxn } from '../../src/etcd.ts';
import { EtcdReplica } from '../../src/replica/etcd-replica.ts';
import { FakeEtcd, type Fate, type Faults } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';
import { seeded } from '../fake/seeded.ts';
import { type FakeNode, type FakeNodeOptions, fakeNode, outcomeOf, put, textAt } from './fake-nodes.ts';

/** The first transaction that puts a record has this fate. */
function onceForRecords(fate: Fate): Faults {
  let isDone = false;
  const putsRecord = (txn: EtcdTxn): boolean =>
    txn.success.some((operation) =>
      operation.kind === 'txn' ? putsRecord(operation.txn) : operation.kind === 'put' && operation.key.startsWith('test/r/'),
    );
  return {
    fateOf: (txn) => {
      if (isDone || !putsRecord(txn)) return 'answered';
      isDone = true;
      return fate;
    },
  };
}

const isPointer = ({ success }: EtcdTxn): boolean =>
  success.some((operation) =>
    operation.kind === 'txn' ? isPointer(operation.txn) : operation.kind === 'put' && operation.key === 'test/m/staged',
  );

storeSuite('a replica over etcd, whose watch is cut and comes in fragments,', async () => {
  const random = seeded(1);
  const node = await fakeNode(new FakeServer(), 1, { fragment: () => Math.ceil(3 * random()), cuts: () => random() < 0.15 });
  await node.replica.leads;
  return { replica: node.replica, close: node.close };
});

describe('a replica over etcd', () => {
  let server: FakeServer;
  const nodes: FakeNode[] = [];
  const open = async (nodeId: number, faults?: FakeNodeOptions): Promise<FakeNode> => {
    const node = await fakeNode(server, nodeId, faults);
    nodes.push(node);
    return node;
  };
  beforeEach(() => {
    server = new FakeServer();
  });
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.close();
  });

  it('reports an unknown outcome when the answer is lost, and has the effect before the next commit', async () => {
    const node = await open(1, onceForRecords('answer lost'));
    await node.replica.leads;
    expect(await outcomeOf(node.replica.commit(put('a', '1')))).to.equal('outcome_unknown');
    expect(await outcomeOf(node.replica.commit({ conditions: [{ path: 'a', revision: 0 }], writes: [] }))).to.equal('conflict');
    expect(await textAt(node, 'a')).to.equal('1');
  });

  it('never applies a transaction whose outcome was unknown after a later one', async () => {
    const node = await open(1, onceForRecords('late'));
    await node.replica.leads;
    expect(await outcomeOf(node.replica.commit(put('a', 'late')))).to.equal('outcome_unknown');
    expect(await outcomeOf(node.replica.commit(put('a', 'acknowledged')))).to.equal('committed');
    expect(node.etcd.lateCount).to.equal(1);
    node.etcd.deliver();
    await node.replica.fresh();
    expect(await textAt(node, 'a')).to.equal('acknowledged');
  });

  it('does not commit as the active node after another has taken over', async () => {
    const old = await open(1, onceForRecords('late'));
    await old.replica.leads;
    const next = await open(2);
    expect(await outcomeOf(next.replica.commit(put('a', 'too early')))).to.equal('not_leader');
    expect(await outcomeOf(old.replica.commit(put('a', 'late')))).to.equal('outcome_unknown');
    old.etcd.isCutOff = true;
    for (const lease of [...server.leases]) server.endLease(lease);
    await next.replica.leads;
    expect(next.replica.status()).to.include({ role: 'leader', ready: true, leader: 2 });
    expect(await outcomeOf(next.replica.commit(put('a', 'new')))).to.equal('committed');
    old.etcd.isCutOff = false;
    old.etcd.deliver();
    expect(await outcomeOf(old.replica.commit(put('a', 'old')))).to.equal('not_leader');
    await old.replica.fresh();
    for (const node of [old, next]) expect(await textAt(node, 'a')).to.equal('new');
    expect(old.replica.status()).to.include({ role: 'follower', ready: false, leader: 2 });
    expect(old.replica.holdsLease()).to.equal(false);
  });

  it('finishes a staged transaction whose node failed after it had taken effect', async () => {
    const old = await open(1);
    await old.replica.leads;
    const writes = Array.from({ length: 250 }, (_, i) => ({ path: `many/${i}`, value: Buffer.from(`${i}`) }));
    let isStaged = false;
    old.etcd.faults = {
      fateOf: (txn) => {
        if (isStaged) return 'request lost';
        isStaged = isPointer(txn);
        return 'answered';
      },
    };
    const staged = outcomeOf(old.replica.commit({ conditions: [], writes }));
    await until(() => isStaged);
    expect(await staged).to.equal('committed');
    expect(await textAt(old, 'many/249')).to.equal('249');
    expect(server.rows('test/r/', 'test/r0')).to.have.length(0);
    old.etcd.isCutOff = true;
    for (const lease of [...server.leases]) server.endLease(lease);
    const next = await open(2);
    await next.replica.leads;
    expect(server.rows('test/r/', 'test/r0')).to.have.length(250);
    expect(server.rows('test/s/', 'test/s0')).to.have.length(0);
    const revision = (await next.replica.get('many/7'))?.revision ?? 0;
    const changed = { conditions: [{ path: 'many/7', revision }], writes: [{ path: 'many/7', value: null }] };
    expect(await outcomeOf(next.replica.commit(changed))).to.equal('committed');
    expect(await textAt(next, 'many/7')).to.equal(undefined);
  });

  it('commits nothing beside a staged transaction that took effect without an answer, before its records are at their keys', async () => {
    const node = await open(1, { fateOf: (txn) => (isPointer(txn) ? 'answer lost' : 'answered') });
    await node.replica.leads;
    const writes = Array.from({ length: 120 }, (_, i) => ({ path: `many/${i}`, value: Buffer.from('staged') }));
    expect(await outcomeOf(node.replica.commit({ conditions: [], writes }))).to.equal('outcome_unknown');
    expect(await outcomeOf(node.replica.commit(put('many/7', 'too early')))).to.equal('not_leader');
    await until(() => node.replica.status().ready);
    expect(await textAt(node, 'many/7')).to.equal('staged');
    expect(await outcomeOf(node.replica.commit(put('many/7', 'later')))).to.equal('committed');
    const next = await open(2);
    expect(await textAt(next, 'many/7')).to.equal('later');
  });

  it('deletes the chunks of a staged transaction that never took effect', async () => {
    const old = await open(1);
    await old.replica.leads;
    old.etcd.faults = { fateOf: () => (server.rows('test/s/', 'test/s0').length === 2 ? 'request lost' : 'answered') };
    const writes = Array.from({ length: 4 }, (_, i) => ({ path: `large/${i}`, value: Buffer.alloc(900_000) }));
    expect(await outcomeOf(old.replica.commit({ conditions: [], writes }))).to.equal('outcome_unknown');
    old.etcd.isCutOff = true;
    for (const lease of [...server.leases]) server.endLease(lease);
    const next = await open(2);
    await next.replica.leads;
    expect(server.rows('test/s/', 'test/s0')).to.have.length(0);
    expect(await next.replica.range({ prefix: '' })).to.deep.equal({ records: [] });
  });

  it('reads the state again when its watch was compacted', async () => {
    const active = await open(1);
    await active.replica.leads;
    const behind = await open(2);
    behind.etcd.isCutOff = true;
    for (const value of ['1', '2']) await active.replica.commit(put('a', value));
    await until(() => behind.faults.length > 0);
    server.compact();
    behind.etcd.isCutOff = false;
    await behind.replica.fresh();
    expect(await textAt(behind, 'a')).to.equal('2');
    expect(behind.notified).to.deep.equal(['everything']);
  });

  it('reads the state again when its watch has lost an event', async () => {
    let isLost = false;
    const active = await open(1);
    await active.replica.leads;
    const loses: Faults['loses'] = ({ row }) => {
      if (isLost || row.key !== 'test/r/a') return false;
      isLost = true;
      return true;
    };
    const other = await open(2, { loses });
    await active.replica.commit(put('a', '1'));
    await other.replica.fresh();
    expect(await textAt(other, 'a')).to.equal('1');
    expect(other.notified).to.deep.equal(['everything']);
    expect(other.faults.map(({ message }) => message)).to.deep.equal(['commit 1 is not complete']);
  });

  it('reads the state again when etcd was restored, although revisions are used again', async () => {
    const node = await open(1);
    await node.replica.leads;
    await node.replica.commit(put('a', 'kept'));
    const backup = server.backup();
    await node.replica.commit(put('a', 'lost'));
    await node.replica.commit(put('b', 'lost'));
    node.etcd.isCutOff = true;
    server.restore(backup);
    const foreign = { kind: 'put', key: 'elsewhere', value: Buffer.from('') } as const;
    for (let i = 0; i < 5; i++) server.txn({ compares: [], success: [foreign], failure: [] });
    await until(() => node.faults.length > 0);
    node.etcd.isCutOff = false;
    await until(() => node.notified.includes('everything'));
    expect(await textAt(node, 'a')).to.equal('kept');
    expect(await textAt(node, 'b')).to.equal(undefined);
  });

  /** Returns an active node whose watch has not noticed yet that etcd was restored to the state without the newest commits. */
  const restoredUnderneath = async (foreignRevisions: number): Promise<FakeNode> => {
    let isHeld = false;
    const node = await open(1, { holdsWatch: () => isHeld });
    await node.replica.leads;
    await node.replica.commit(put('a', 'kept'));
    const backup = server.backup();
    for (const value of ['lost', 'lost, too']) await node.replica.commit(put('a', value));
    isHeld = true;
    server.restore(backup);
    const foreign = { kind: 'put', key: 'elsewhere', value: Buffer.from('') } as const;
    for (let i = 0; i < foreignRevisions; i++) server.txn({ compares: [], success: [foreign], failure: [] });
    return node;
  };

  for (const { revisions, foreign } of [
    { revisions: 'lower than those of the copy', foreign: 0 },
    { revisions: 'that have reached those of the copy again', foreign: 20 },
  ]) {
    it(`takes no old copy for fresh after a restore of etcd, with revisions ${revisions}`, async () => {
      const node = await restoredUnderneath(foreign);
      const error = await node.replica.fresh().catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(StoreError).with.property('code', 'not_leader');
      await until(() => node.notified.includes('everything'));
      await node.replica.fresh();
      expect(await textAt(node, 'a')).to.equal('kept');
    });
  }

  it('does not take a write that a restored etcd made for one that its copy contains', async () => {
    const node = await restoredUnderneath(0);
    expect(await outcomeOf(node.replica.commit(put('b', 'new')))).to.equal('outcome_unknown');
    await until(() => node.notified.includes('everything'));
    expect([await textAt(node, 'a'), await textAt(node, 'b')]).to.deep.equal(['kept', 'new']);
  });

  it('refuses a commit when etcd does not tell in time what became of an earlier one', async () => {
    const node = await open(1, { ...onceForRecords('answer lost'), timeoutMs: 20 });
    await node.replica.leads;
    node.etcd.faults = { fateOf: () => 'request lost' };
    expect(await outcomeOf(node.replica.commit(put('a', '1')))).to.equal('outcome_unknown');
    expect(await outcomeOf(node.replica.commit(put('a', '2')))).to.equal('not_leader');
    node.etcd.faults = {};
    expect(await outcomeOf(node.replica.commit(put('a', '3')))).to.equal('committed');
  });

  it('counts values in ranges that a failed node does not return', async () => {
    const old = await open(1);
    await old.replica.leads;
    await old.replica.commit(put('a', '1'));
    expect(old.replica.status().valuesWritten).to.equal(1);
    old.etcd.isCutOff = true;
    for (const lease of [...server.leases]) server.endLease(lease);
    const next = await open(2);
    await next.replica.leads;
    expect(next.replica.status().valuesWritten).to.equal(65_536);
    await next.replica.commit(put('a', '2'));
    expect(next.replica.status().valuesWritten).to.equal(65_537);
  });

  it('opens although etcd does not answer at first, and gives up soon when it never does', async () => {
    for (const { failures, ranges } of [
      { failures: 2, ranges: undefined },
      { failures: Number.POSITIVE_INFINITY, ranges: 3 },
    ]) {
      const etcd = new FakeEtcd(server);
      let asked = 0;
      const range = etcd.range.bind(etcd);
      etcd.range = (request) =>
        ++asked > failures ? range(request) : Promise.reject(new EtcdError('unknown', 'etcdserver: leader changed'));
      const opening = EtcdReplica.open({ etcd, prefix: 'test', nodeId: 1, retryMs: 1, mayLead: false });
      if (ranges === undefined) await (await opening).close();
      else {
        expect(await opening.catch((error: unknown) => error)).to.be.instanceOf(EtcdError);
        expect(asked).to.equal(ranges);
      }
    }
  });

  it('keeps two clusters apart, and gives each an id', async () => {
    const node = await open(1);
    await node.replica.leads;
    await node.replica.commit(put('a', '1'));
    expect(node.replica.status().clusterId).to.match(/^[0-9a-f-]{36}$/);
    expect(server.rows('test/', 'test0').length).to.equal(server.rows('', '\uffff').length);
  });

  it('refuses a record that is larger than a key may be', async () => {
    const node = await open(1);
    await node.replica.leads;
    const writes = [{ path: 'a', value: Buffer.alloc(1024 * 1024 + 1) }];
    expect(await outcomeOf(node.replica.commit({ conditions: [], writes }))).to.equal('too_large');
  });

  it('refuses commits, and ends those that wait, when it closes', async () => {
    const node = await open(1, onceForRecords('answered'));
    await node.replica.leads;
    node.etcd.faults = { cuts: () => true };
    const waiting = outcomeOf(node.replica.commit(put('a', '1')));
    await until(() => server.rows('test/r/a', undefined).length > 0);
    await node.close();
    expect(await waiting).to.equal('outcome_unknown');
    expect(await outcomeOf(node.replica.commit(put('a', '2')))).to.equal('stopped');
  });
});
