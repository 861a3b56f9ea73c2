import {
  clearRestores,
  inspectSnapshot,
  recordsOfSnapshot,
  restoreSnapshot,
  StoreError,
  snapshotOfRecords,
} from '@transitd/storage-fsm';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { inTemporaryDirectory } from '../../../storage-fsm/test/directory/temporary-directory.ts';
import { restoring, stage, swap } from '../../../storage-fsm/test/snapshot/restore-steps.ts';
import { flush, newNode, serving, soleReplica, apply as toMachine } from '../../../storage-fsm/test/snapshot/snapshot-nodes.ts';
import { rejection } from '../../../storage-fsm/test/store/store.suite.ts';
import type { EtcdTxn } from '../../src/etcd.ts';
import type { Faults } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';
import { type FakeNode, fakeNode, outcomeOf, put, textAt } from './fake-nodes.ts';

const backupOf = ({ replica }: FakeNode) => {
  const state = replica.state();
  return () => snapshotOfRecords(state);
};

/** Paths and texts of all records. */
async function recordsOf({ replica }: FakeNode): Promise<Record<string, string>> {
  const { records } = await replica.range({ prefix: '' });
  return Object.fromEntries(records.map(({ path, value }) => [path, Buffer.from(value).toString()]));
}

const isPutOf = ({ success }: EtcdTxn, key: string): boolean =>
  success.some((one) => (one.kind === 'txn' ? isPutOf(one.txn, key) : one.kind === 'put' && one.key === key));

const isDeleteOf = ({ success }: EtcdTxn, key: string): boolean =>
  success.some((one) => (one.kind === 'txn' ? isDeleteOf(one.txn, key) : one.kind === 'delete' && one.key === key));

const isSwap = (txn: EtcdTxn): boolean => isPutOf(txn, 'test/m/space');

describe('a restore in etcd', () => {
  let server: FakeServer;
  const nodes: FakeNode[] = [];
  const open = async (nodeId: number, faults?: Faults): Promise<FakeNode> => {
    const node = await fakeNode(server, nodeId, faults);
    nodes.push(node);
    return node;
  };
  const keysOf = (prefix: string): string[] => server.rows(`test/${prefix}`, `test/${prefix}~`).map(({ key }) => key);
  beforeEach(() => {
    server = new FakeServer();
  });
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.close();
  });

  it('replaces the records on every node at one commit, however many there are', async () => {
    const first = await open(1);
    await first.replica.leads;
    const writes = Array.from({ length: 250 }, (_, i) => ({ path: `many/${i}`, value: Buffer.from(`old ${i}`) }));
    await first.replica.commit({ conditions: [], writes });
    await first.replica.commit(put('a', 'old'));
    const backup = backupOf(first);
    const { records } = await inspectSnapshot(backup());
    expect(records).to.equal(252); // the level is one of them
    await first.replica.commit({ conditions: [], writes: [{ path: 'many/7', value: null }, ...put('new', '1').writes] });
    await first.replica.commit(put('a', 'new'));
    const second = await open(2);
    first.notified.length = 0;
    const valuesBefore = first.replica.status().valuesWritten;
    expect(first.replica.restoredBy).to.equal(undefined);
    const { outcome, index } = await restoreSnapshot(first.replica, backup, { attempt: 'one' });
    expect(outcome).to.equal('restored');
    await until(() => second.replica.status().appliedIndex >= index);
    const third = await open(3);
    for (const node of [first, second, third]) {
      expect(node.replica.restoredBy).to.equal('one');
      expect(await textAt(node, 'a')).to.equal('old');
      expect(await textAt(node, 'new')).to.equal(undefined);
      expect(await textAt(node, 'many/7')).to.equal('old 7');
      expect((await node.replica.paths({ prefix: 'many/', limit: 5000 })).paths).to.have.length(250);
    }
    expect(first.notified).to.deep.equal(['everything']);
    expect(second.notified).to.deep.equal(['everything']);
    expect(first.faults.concat(second.faults)).to.deep.equal([]);
    expect(first.replica.status().valuesWritten).to.be.at.least(valuesBefore);
    expect(await outcomeOf(first.replica.commit(put('a', 'after')))).to.equal('committed');
    await until(() => second.notified.length === 2);
    expect(await textAt(second, 'a')).to.equal('after');
    await first.replica.clearRestores();
    expect(keysOf('r/')).to.deep.equal([]);
    expect(keysOf('r1/')).to.have.length(251);
    expect(await recordsOf(await open(4))).to.deep.equal(await recordsOf(first));
  });

  it('can be repeated, and each next restore replaces the one before', async () => {
    const node = await open(1);
    await node.replica.leads;
    for (const value of ['1', '2', '3']) {
      expect(await outcomeOf(node.replica.commit(stage(value, 0, ['a', value])))).to.equal('committed');
      expect(await outcomeOf(node.replica.commit(stage(value, 0, ['a', value])))).to.equal('committed');
      for (let times = 0; times < 2; times++)
        expect(await outcomeOf(node.replica.commit(swap(value, [['a', value]])))).to.equal('committed');
      expect(await recordsOf(node)).to.deep.equal({ a: value });
    }
    await node.replica.clearRestores();
    expect(keysOf('r')).to.deep.equal(['test/r3/a']);
  });

  it('leaves the state alone while it is staged, when it is abandoned, and when its records are not those of the swap', async () => {
    const node = await open(1);
    await node.replica.leads;
    await node.replica.commit(put('a', 'own'));
    await node.replica.commit(stage('one', 0, ['a', '1'], ['b', '1']));
    expect(await outcomeOf(node.replica.commit(swap('one', [['a', '1']])))).to.equal('conflict');
    expect(await outcomeOf(node.replica.commit(swap('two', [['a', '1']])))).to.equal('conflict');
    expect(await outcomeOf(node.replica.commit(stage('two', 1, ['a', '1'])))).to.equal('conflict');
    await node.replica.clearRestores('one');
    expect(keysOf('r1/')).to.have.length(2);
    await node.replica.commit(restoring({ kind: 'abandon', attempt: 'one' }));
    expect(keysOf('r1/')).to.deep.equal([]);
    await node.replica.commit(stage('one', 0, ['a', '1']));
    await node.replica.clearRestores();
    expect(await outcomeOf(node.replica.commit(swap('one', [['a', '1']])))).to.equal('conflict');
    expect(await recordsOf(node)).to.deep.equal({ a: 'own' });
  });

  it('ends with the active node that began it, and the next one begins again', async () => {
    const [first, second] = [await open(1), await open(2)];
    await first.replica.leads;
    await first.replica.commit(stage('one', 0, ['a', '1']));
    expect(await outcomeOf(second.replica.commit(stage('one', 0, ['a', '1'])))).to.equal('not_leader');
    await first.replica.close();
    await second.replica.leads;
    expect(await outcomeOf(second.replica.commit(swap('one', [['a', '1']])))).to.equal('conflict');
    expect(await outcomeOf(second.replica.commit(stage('one', 1, ['b', '1'])))).to.equal('conflict');
    await second.replica.commit(stage('two', 0, ['b', '2']));
    expect(await outcomeOf(second.replica.commit(swap('two', [['b', '2']])))).to.equal('committed');
    expect(await recordsOf(second)).to.deep.equal({ b: '2' });
  });

  for (const fate of ['answer lost', 'request lost', 'late'] as const)
    it(`is in effect or not on all nodes when the outcome of its last write is unknown: ${fate}`, async () => {
      const node = await open(1, { fateOf: (txn) => (isSwap(txn) ? fate : 'answered') });
      await node.replica.leads;
      await node.replica.commit(put('a', 'own'));
      await node.replica.commit(stage('one', 0, ['a', 'restored']));
      expect(await outcomeOf(node.replica.commit(swap('one', [['a', 'restored']])))).to.equal('outcome_unknown');
      expect(await outcomeOf(node.replica.commit(put('b', 'later')))).to.equal('committed');
      node.etcd.deliver();
      const expected = { a: fate === 'answer lost' ? 'restored' : 'own', b: 'later' };
      expect(await recordsOf(node)).to.deep.equal(expected);
      expect(await recordsOf(await open(2))).to.deep.equal(expected);
    });

  for (const fate of ['answer lost', 'request lost', 'late'] as const)
    it(`goes on when the outcome of a write before the last one is unknown once: ${fate}`, async () => {
      const isOf = (txn: EtcdTxn, key: string) => isPutOf(txn, key) || isDeleteOf(txn, key);
      const lost = new Set(['test/r1/a', 'test/r1/b']);
      const node = await open(1, {
        fateOf: (txn) => ([...lost].some((key) => isOf(txn, key) && lost.delete(key)) ? fate : 'answered'),
      });
      await node.replica.leads;
      server.txn({ compares: [], success: [{ kind: 'put', key: 'test/r1/b', value: Buffer.from('left') }], failure: [] });
      expect(await outcomeOf(node.replica.commit(stage('one', 0, ['a', 'restored'])))).to.equal('committed');
      expect(lost.size).to.equal(0);
      node.etcd.deliver();
      expect(keysOf('r1/')).to.deep.equal(['test/r1/a']);
      expect(await outcomeOf(node.replica.commit(swap('one', [['a', 'restored']])))).to.equal('committed');
      expect(await recordsOf(node)).to.deep.equal({ a: 'restored' });
    });

  it('ends when etcd does not answer its writes', async () => {
    let lost = 0;
    const node = await open(1, { fateOf: (txn) => (isPutOf(txn, 'test/r1/a') && lost++ >= 0 ? 'request lost' : 'answered') });
    await node.replica.leads;
    expect(await outcomeOf(node.replica.commit(stage('one', 0, ['a', 'restored'])))).to.equal('outcome_unknown');
    expect(lost).to.equal(3);
  });

  it('keeps the restored records if leftovers are deleted before the node has seen that its restore took effect', async () => {
    let isHeld = false;
    const node = await open(1, { fateOf: (txn) => (isSwap(txn) ? 'answer lost' : 'answered'), holdsWatch: () => isHeld });
    await node.replica.leads;
    await node.replica.commit(put('a', 'own'));
    await node.replica.commit(stage('one', 0, ['a', 'restored']));
    const activeRevision = (): number => server.rows('test/m/active', undefined)[0]?.modRevision ?? 0;
    const before = activeRevision();
    isHeld = true;
    expect(await outcomeOf(node.replica.commit(swap('one', [['a', 'restored']])))).to.equal('outcome_unknown');
    const clearing = rejection(node.replica.clearRestores());
    await until(() => activeRevision() > before);
    isHeld = false;
    server.txn({ compares: [], success: [{ kind: 'put', key: 'other', value: Buffer.from('') }], failure: [] });
    expect(await clearing).to.be.instanceOf(StoreError);
    expect(await recordsOf(await open(2))).to.deep.equal({ a: 'restored' });
    await node.replica.clearRestores();
    expect(keysOf('r')).to.deep.equal(['test/r1/a']);
    expect(await recordsOf(node)).to.deep.equal({ a: 'restored' });
  });

  it('refuses a step that waited while the node lost the active role and took it again', async () => {
    const node = await open(1, { fateOf: (txn) => (isPutOf(txn, 'test/r/lost') ? 'answer lost' : 'answered') });
    const { etcd, replica } = node;
    await replica.leads;
    await replica.commit(stage('one', 0, ['a', '1']));
    expect(await outcomeOf(replica.commit(put('lost', '1')))).to.equal('outcome_unknown');
    const renewal = Promise.withResolvers<void>();
    const send = etcd.txn.bind(etcd);
    let isRenewing = false;
    etcd.txn = async (txn) => {
      isRenewing ||= isPutOf(txn, 'test/m/active');
      if (isPutOf(txn, 'test/m/active') && txn.compares[0]?.modRevision !== 0) await renewal.promise;
      return send(txn);
    };
    const step = outcomeOf(replica.commit(stage('one', 1, ['b', '1'])));
    await until(() => isRenewing);
    replica.mayLead = false;
    await until(() => server.rows('test/m/active', undefined).length === 0);
    replica.mayLead = true;
    await until(() => replica.status().ready);
    renewal.resolve();
    expect(await step).to.equal('not_leader');
    expect(keysOf('r1/')).to.deep.equal(['test/r1/a']);
  });

  it('counts at least as many values as the backup when the outcome of its last write is unknown', async () => {
    const node = await open(1, { fateOf: (txn) => (isSwap(txn) ? 'answer lost' : 'answered') });
    await node.replica.leads;
    await node.replica.commit(stage('one', 0, ['a', '1']));
    const written = 1_000_000;
    expect(await outcomeOf(node.replica.commit(swap('one', [['a', '1']], [], written)))).to.equal('outcome_unknown');
    await node.replica.commit(put('b', '1'));
    expect(node.replica.status().valuesWritten).to.be.above(written);
  });

  it('changes nothing when a record is too large for etcd', async () => {
    const node = await open(1);
    await node.replica.leads;
    await node.replica.commit(put('a', 'own'));
    const value = Buffer.alloc(1024 * 1024 + 1);
    const large = restoring({ kind: 'stage', attempt: 'one', chunk: 0, records: [{ path: 'large', value }] });
    expect(await outcomeOf(node.replica.commit(large))).to.equal('too_large');
    expect(await rejection(node.replica.commit(swap('one', [['a', '1']], ['kept'])))).to.be.instanceOf(TypeError);
    expect(await recordsOf(node)).to.deep.equal({ a: 'own' });
  });

  it('takes backups of Raft, and Raft takes those of etcd', () =>
    inTemporaryDirectory(async (parent) => {
      const source = await newNode(parent, 'source', 1);
      const disk = await newNode(parent, 'disk', 2);
      const node = await open(1);
      try {
        await node.replica.leads;
        toMachine(source.machine, put('a', 'of Raft'), put('b/1', 'B'), put('kept', 'theirs'));
        await flush(source.machine);
        const chunks: Uint8Array[] = [];
        for await (const chunk of serving(source).snapshots.backup()) chunks.push(chunk);
        const ofRaft = async function* () {
          yield* chunks;
        };
        await restoreSnapshot(node.replica, ofRaft, { attempt: 'one' });
        expect(await recordsOf(node)).to.deep.equal({ a: 'of Raft', 'b/1': 'B', kept: 'theirs' });
        await node.replica.commit(put('a', 'of etcd'));
        const ofEtcd = backupOf(node);
        expect([...(await recordsOfSnapshot(ofEtcd(), ['a'])).keys()]).to.deep.equal(['a']);
        toMachine(disk.machine, put('kept', 'ours'), put('own', '1'));
        const { outcome } = await restoreSnapshot(soleReplica(disk.machine), ofEtcd, { attempt: 'two', keep: ['kept'] });
        expect(outcome).to.equal('restored');
        const texts = ['a', 'b/1', 'kept', 'own'].map((path) => disk.machine.getSync(path)?.value.toString());
        expect(texts).to.deep.equal(['of etcd', 'B', 'ours', undefined]);
        await clearRestores(soleReplica(disk.machine), disk.machine);
      } finally {
        await source.close();
        await disk.close();
      }
    }));
});
