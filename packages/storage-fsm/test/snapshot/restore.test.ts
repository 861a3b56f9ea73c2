import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodecError } from '@transitd/raft-core';
import { expect } from 'chai';
import { snapshotOfRecords } from '../../src/snapshot/records-snapshot.ts';
import {
  clearRestores,
  inspectSnapshot,
  recordsOfSnapshot,
  restorableTotals,
  restoreSnapshot,
} from '../../src/snapshot/restore.ts';
import { readSnapshotFile, writeSnapshotFile } from '../../src/snapshot/snapshot-file.ts';
import type { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { type CommitResult, StoreError } from '../../src/store/store.ts';
import type { Command } from '../../src/store/transaction.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { base } from '../log/log-calls.ts';
import { rejection } from '../store/store.suite.ts';
import { restoring, stage, swap } from './restore-steps.ts';
import {
  apply,
  fetched,
  flush,
  installed,
  linkTo,
  newNode,
  put,
  type SnapshotNode,
  serving,
  shownState,
  soleReplica,
} from './snapshot-nodes.ts';

/** A node with a backup in a file, and another node with a different state. */
async function withBackup(use: (given: { file: string; node: SnapshotNode; parent: string }) => Promise<void>): Promise<void> {
  await inTemporaryDirectory(async (parent) => {
    const source = await newNode(parent, 'source', 1);
    apply(source.machine, put('a', 'A'), put('b/1', 'B1'), put('cluster/id', 'theirs'), put('gone', '1'));
    apply(source.machine, { conditions: [], writes: [{ path: 'gone', value: null }] });
    apply(source.machine, ...Array.from({ length: 30 }, (_, i) => put(`big/${i + 10}`, 'x'.repeat(50_000))));
    await flush(source.machine);
    const file = join(parent, 'backup');
    await writeSnapshotFile(file, serving(source).snapshots.backup());
    await source.close();
    const node = await newNode(parent, 'node', 2);
    apply(node.machine, put('a', 'own'), put('own', '1'), put('cluster/id', 'ours'), put('b/2', 'own'));
    try {
      await use({ file, node, parent });
    } finally {
      await node.close();
    }
  });
}

const big = Array.from({ length: 30 }, (_, i) => `big/${i + 10}`);
const pathsOf = async (machine: KeyValueMachine): Promise<string[]> =>
  (await shownState(machine)).map((shown) => shown.slice(0, shown.indexOf('=')));
const textOf = (machine: KeyValueMachine, path: string): string | undefined => {
  const record = machine.getSync(path);
  return record && Buffer.from(record.value).toString();
};

describe('single records of a snapshot', () => {
  const texts = (records: ReadonlyMap<string, Uint8Array>) =>
    [...records].map(([path, value]) => [path, Buffer.from(value).toString()]);

  it('are found by the paths under which readers saw them, also after a restore', () =>
    withBackup(async ({ file, node, parent }) => {
      expect(texts(await recordsOfSnapshot(readSnapshotFile(file), ['b/1', 'gone', 'a']))).to.deep.equal([
        ['a', 'A'],
        ['b/1', 'B1'],
      ]);
      await restoreSnapshot(soleReplica(node.machine), () => readSnapshotFile(file), { attempt: 'one' });
      await flush(node.machine);
      const later = join(parent, 'later');
      await writeSnapshotFile(later, serving(node).snapshots.backup());
      expect(texts(await recordsOfSnapshot(readSnapshotFile(later), ['a', 'own']))).to.deep.equal([['a', 'A']]);
    }));
});

describe('a backup', () => {
  it('is a file that only its owner can read, with a summary of its content', () =>
    withBackup(async ({ file, parent }) => {
      expect((await stat(file)).mode & 0o777).to.equal(0o600);
      const summary = await inspectSnapshot(readSnapshotFile(file));
      expect(summary).to.deep.include({ meta: base(35, 3), records: 33, valuesWritten: 34 });
      expect((await readdir(parent)).sort()).to.deep.equal(['backup', 'node', 'source']);
    }));

  it('is refused when it has changed or is truncated', () =>
    withBackup(async ({ file }) => {
      const bytes = await readFile(file);
      for (const at of [0, 20, 1000, bytes.length - 1]) {
        const changed = Buffer.from(bytes);
        changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
        await writeFile(file, changed);
        expect(await rejection(inspectSnapshot(readSnapshotFile(file)))).to.be.instanceOf(CodecError);
      }
      await writeFile(file, bytes.subarray(0, -1));
      expect(await rejection(inspectSnapshot(readSnapshotFile(file)))).to.be.instanceOf(CodecError);
    }));

  it('leaves no file when it cannot be written completely', () =>
    inTemporaryDirectory(async (parent) => {
      const broken = (async function* () {
        yield Buffer.from('beginning');
        throw new Error('the reading broke');
      })();
      expect(await rejection(writeSnapshotFile(join(parent, 'backup'), broken))).to.have.property('message', 'the reading broke');
      expect(await readdir(parent)).to.deep.equal([]);
    }));
});

describe('a restore', () => {
  it('replaces all records except the kept ones with the records of a backup, and notifies watchers', () =>
    withBackup(async ({ file, node: { machine } }) => {
      const notified: unknown[] = [];
      machine.watch('a', (changes) => notified.push(changes));
      const replica = soleReplica(machine);
      const progress: number[] = [];
      const open = () => readSnapshotFile(file);
      const outcome = await restoreSnapshot(replica, open, {
        attempt: 'one',
        keep: ['cluster/'],
        onProgress: (staged) => progress.push(staged),
      });
      expect(outcome).to.deep.equal({ outcome: 'restored', records: 32, index: machine.applied.appliedIndex });
      expect(progress.at(-1)).to.equal(32);
      expect(progress).to.have.length.above(2);
      expect(notified).to.deep.equal(['everything']);
      expect(await pathsOf(machine)).to.deep.equal(['a', 'b/1', ...big, 'cluster/id']);
      expect(['a', 'own', 'cluster/id', 'b/2', 'b/1', 'gone'].map((path) => textOf(machine, path))).to.deep.equal([
        'A',
        undefined,
        'ours',
        undefined,
        'B1',
        undefined,
      ]);
      expect(machine.applied.valuesWritten, 'as many as the backup knew of').to.equal(34);

      const { revision } = machine.getSync('a') ?? { revision: 0 };
      expect(await replica.commit({ conditions: [{ path: 'a', revision: 1 }], writes: [] }), 'a revision from before').to.include(
        { outcome: 'conflict' },
      );
      const write = {
        conditions: [
          { path: 'a', revision },
          { path: 'own', revision: 0 },
        ],
        writes: [
          { path: 'own', value: Buffer.from('new') },
          { path: 'a', value: null },
        ],
      };
      expect(await replica.commit(write)).to.include({ outcome: 'committed' });
      expect(['a', 'own'].map((path) => textOf(machine, path))).to.deep.equal([undefined, 'new']);
    }));

  it('leaves nothing of the old state on disk after clearing, and the digest matches the records', () =>
    withBackup(async ({ file, node, parent }) => {
      const { machine } = node;
      const replica = soleReplica(machine);
      await restoreSnapshot(replica, () => readSnapshotFile(file), { attempt: 'one', keep: ['cluster/'] });
      expect(await clearRestores(replica, machine)).to.equal(3);
      expect(await clearRestores(replica, machine)).to.equal(0);
      await flush(machine);
      expect(await machine.checkDigest()).to.include({ sound: true, digest: machine.applied.digest });
      const backup = join(parent, 'second');
      await writeSnapshotFile(backup, serving(node).snapshots.backup());
      expect(await inspectSnapshot(readSnapshotFile(backup))).to.include({ records: 34 }); // 32 restored, the kept one, the spaces record
      const before = await shownState(machine);

      await restoreSnapshot(replica, () => readSnapshotFile(backup), { attempt: 'two' });
      expect(await pathsOf(machine)).to.deep.equal(['a', 'b/1', ...big, 'cluster/id']);
      expect(await clearRestores(replica, machine)).to.equal(33);
      expect((await shownState(machine)).map((shown) => shown.split('@')[0])).to.deep.equal(
        before.map((shown) => shown.split('@')[0]),
      );
    }));

  it('keeps the old state visible when it fails half-way, and the next leader can continue it', () =>
    withBackup(async ({ file, node: { machine } }) => {
      const before = await shownState(machine);
      const replica = soleReplica(machine);
      const notified: unknown[] = [];
      machine.watch('', (changes) => notified.push(changes));
      let left = 2;
      const failing = {
        status: () => replica.status(),
        commit: async (command: Command): Promise<CommitResult> => {
          if (left-- === 0) throw new StoreError('not_leader', 'this node is not the leader');
          return replica.commit(command);
        },
      };
      const open = () => readSnapshotFile(file);
      const refusal = await rejection(restoreSnapshot(failing, open, { attempt: 'one' }));
      expect(refusal).to.be.instanceOf(StoreError).with.property('code', 'not_leader');
      expect(machine.restoring).to.equal('one');
      expect(machine.restoredBy).to.equal(undefined);
      expect(await shownState(machine)).to.deep.equal(before);
      for (const hidden of ['\u0001spaces', '\u000200000001/a']) expect(machine.getSync(hidden)).to.equal(undefined);
      for (const prefix of ['\u0001', '\u0002', '\u000200000001/'])
        expect((await machine.range({ prefix })).records).to.deep.equal([]);
      expect((await machine.range({ prefix: '', after: '\u0000' })).records.map(({ path }) => path)).to.deep.equal(
        await pathsOf(machine),
      );
      expect(notified).to.deep.equal([]);
      expect(await clearRestores(replica, machine, { underWay: 'one' }), 'it is in progress').to.equal(0);
      expect(await restoreSnapshot(replica, open, { attempt: 'one' })).to.include({ outcome: 'restored' });
      expect(await restoreSnapshot(replica, open, { attempt: 'one' }), 'again').to.include({ outcome: 'restored' });
      expect(machine.restoredBy).to.equal('one');
      expect(await pathsOf(machine)).to.deep.equal(['a', 'b/1', ...big, 'cluster/id']);
    }));

  it('is swept when it is abandoned half-way', () =>
    withBackup(async ({ node: { machine } }) => {
      const before = await shownState(machine);
      const replica = soleReplica(machine);
      await replica.commit(stage('one', 0, ['a', '1'], ['b', '2']));
      expect(await clearRestores(replica, machine)).to.equal(2);
      expect(machine.restoring).to.equal(undefined);
      expect(
        await replica.commit(
          swap('one', [
            ['a', '1'],
            ['b', '2'],
          ]),
        ),
      ).to.include({ outcome: 'conflict' });
      expect(await replica.commit(stage('one', 1, ['c', '3']))).to.include({ outcome: 'conflict' });
      expect(await shownState(machine)).to.deep.equal(before);
    }));

  it('loses nothing to a sweep while it is in progress', () =>
    withBackup(async ({ node: { machine } }) => {
      const replica = soleReplica(machine);
      await replica.commit(stage('one', 0, ['a', '1']));
      const names = ['\u000200000001/a', 'a', 'own'];
      expect(await replica.commit(restoring({ kind: 'sweep', names }))).to.include({ outcome: 'committed' });
      expect(textOf(machine, 'own')).to.equal('1');
      await replica.commit(swap('one', [['a', '1']]));
      expect(await shownState(machine)).to.deep.equal(['a=1@5']);
    }));

  it('ends when another restore begins', () =>
    withBackup(async ({ file, node: { machine } }) => {
      const replica = soleReplica(machine);
      let other = false;
      const disturbed = {
        status: () => replica.status(),
        commit: async (command: Command) => {
          const result = await replica.commit(command);
          if (!other) await replica.commit(stage('other', 0, ['x', '1']));
          other = true;
          return result;
        },
      };
      const before = await shownState(machine);
      expect(await restoreSnapshot(disturbed, () => readSnapshotFile(file), { attempt: 'one' })).to.include({
        outcome: 'superseded',
      });
      expect(machine.restoring).to.equal('other');
      expect(await shownState(machine)).to.deep.equal(before);
    }));

  it('does not go live unless count and digest match', () =>
    withBackup(async ({ node: { machine } }) => {
      const replica = soleReplica(machine);
      await replica.commit(stage('one', 0, ['a', '1'], ['b', '2']));
      for (const wrong of [
        swap('one', [['a', '1']]),
        swap('one', [
          ['a', '1'],
          ['b', '3'],
        ]),
        swap('two', [
          ['a', '1'],
          ['b', '2'],
        ]),
      ])
        expect(await replica.commit(wrong)).to.include({ outcome: 'conflict' });
      await replica.commit(stage('one', 1, ['a', '1']));
      expect(
        await replica.commit(
          swap('one', [
            ['a', '1'],
            ['b', '2'],
          ]),
        ),
        'a path received twice',
      ).to.include({ outcome: 'conflict' });
      expect(textOf(machine, 'own')).to.equal('1');
    }));

  it('never lowers the count of values written', () =>
    withBackup(async ({ node: { machine } }) => {
      const replica = soleReplica(machine);
      const { valuesWritten } = machine.applied;
      await replica.commit(stage('one', 0, ['a', '1']));
      expect(machine.applied.valuesWritten).to.equal(valuesWritten);
      await replica.commit(swap('one', [['a', '1']], [], 1));
      expect(machine.applied.valuesWritten).to.equal(valuesWritten);
      await replica.commit(stage('two', 0, ['a', '1']));
      await replica.commit(swap('two', [['a', '1']], [], 1000));
      await replica.commit(put('a', '2'));
      expect(machine.applied.valuesWritten).to.equal(1001);
    }));

  it('proposes nothing for an incomplete or empty snapshot, or on a node that is not the leader', () =>
    withBackup(async ({ file, node: { machine }, parent }) => {
      const before = machine.applied;
      const bytes = await readFile(file);
      const broken = join(parent, 'broken');
      await writeFile(broken, bytes.subarray(0, -1));
      expect(
        await rejection(restoreSnapshot(soleReplica(machine), () => readSnapshotFile(broken), { attempt: 'one' })),
      ).to.be.instanceOf(CodecError);
      const all = { attempt: 'one', keep: ['a', 'b', 'c'] };
      expect(await rejection(restoreSnapshot(soleReplica(machine), () => readSnapshotFile(file), all))).to.be.instanceOf(
        CodecError,
      );
      const refusal = await rejection(
        restoreSnapshot(soleReplica(machine, 'follower'), () => readSnapshotFile(file), { attempt: 'one' }),
      );
      expect(refusal).to.be.instanceOf(StoreError).with.property('code', 'not_leader');
      expect(machine.applied).to.deep.equal(before);
    }));

  it('can be continued on another node that received the staged half in a snapshot', () =>
    withBackup(async ({ node, parent }) => {
      apply(node.machine, stage('one', 0, ['a', '1']));
      await flush(node.machine);
      const follower = await newNode(parent, 'follower', 3);
      const { snapshots } = serving(follower, { link: linkTo(serving(node).snapshots, 3) });
      await follower.log.write({ hardState: { term: 3, vote: 0, commit: 0 }, entries: [] }, () => undefined);
      const meta = await fetched(snapshots, base(1, 3));
      if (meta === undefined) throw new Error('nothing was fetched');
      await installed(snapshots, meta);
      await snapshots.close();
      for (const { machine } of [node, follower]) {
        expect(machine.restoring).to.equal('one');
        apply(
          machine,
          stage('one', 1, ['b', '2']),
          swap(
            'one',
            [
              ['a', '1'],
              ['b', '2'],
            ],
            ['cluster/'],
          ),
          put('c', '3'),
        );
        expect(await pathsOf(machine)).to.deep.equal(['a', 'b', 'c', 'cluster/id']);
      }
      expect(follower.machine.applied).to.deep.equal(node.machine.applied);
      await follower.close();
    }));
});

describe('the count of values written in a snapshot', () => {
  const snapshotWith = (valuesWritten: number) => snapshotOfRecords({ index: 1, term: 1, level: 1, valuesWritten, rows: [] });

  it('is refused above those that leave room for the counts of the cluster, by which its key is rotated', async () => {
    expect((await restorableTotals(snapshotWith(2 ** 47 - 1))).valuesWritten).to.equal(2 ** 47 - 1);
    const error = await rejection(restorableTotals(snapshotWith(2 ** 47)));
    expect(error).to.be.instanceOf(CodecError);
    expect((error as Error).message).to.include('count of values');
  });
});
