import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { encodeConfState } from '@transitd/raft-core';
import { expect } from 'chai';
import { NewerFormat, StorageDamaged, StorageFailed, StorageInUse } from '../../src/errors.ts';
import { segmentHeaderBytes } from '../../src/log/segment.ts';
import {
  LogUnreadable,
  type RecoveredState,
  type RecoveryOptions,
  withRecoveredState,
} from '../../src/snapshot/recovered-state.ts';
import { inspectSnapshot } from '../../src/snapshot/restore.ts';
import { readSnapshot } from '../../src/snapshot/snapshot-stream.ts';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { StateStore } from '../../src/state/state-store.ts';
import { encodeTransaction } from '../../src/store/codec.ts';
import { addToDigest, recordDigest } from '../../src/store/digest.ts';
import { replicationName } from '../../src/store/replication-state.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { base, compact, read, write } from '../log/log-calls.ts';
import { rejection } from '../store/store.suite.ts';
import { flush, newNode, openNode, put, type SnapshotNode } from './snapshot-nodes.ts';

const normal = (index: number, term: number, transaction: Transaction) => ({
  term,
  index,
  type: 'normal' as const,
  data: encodeTransaction(transaction),
});

/** Returns the recovered state and the records of its stream. */
interface Found extends Omit<RecoveredState, 'stream'> {
  readonly records: readonly string[];
}

async function foundIn(directory: string, options: RecoveryOptions = {}): Promise<Found> {
  return withRecoveredState(directory, options, async ({ stream, ...state }) => {
    const { meta } = await inspectSnapshot(stream());
    expect(meta.index).to.equal(state.index);
    const records: string[] = [];
    for await (const part of readSnapshot(stream()))
      if (part.type === 'records') for (const { path, value } of part.rows) records.push(`${path}=${Buffer.from(value)}`);
    return { ...state, records };
  });
}

/**
 * Creates a node that has stored entries 1 to 8 in two terms, knows 6 of them to be committed, has flushed 4, and stopped without another
 * flush. Entry 6 changes a flushed record, entry 7 deletes one, and entry 8 has a condition that does not hold.
 */
async function stoppedNode(parent: string): Promise<string> {
  const node = await newNode(parent, 'node', 7);
  const of = (index: number): Transaction => put(`kept/${index}`, `value ${index}`);
  const conf = { ...base(0, 0).conf, voters: [7, 8, 9], context: Buffer.from('members') };
  await write(node.log, {
    hardState: { term: 2, vote: 0, commit: 0 },
    entries: [
      ...[1, 2, 3].map((index) => normal(index, 1, of(index))),
      { term: 1, index: 4, type: 'conf', data: encodeConfState(conf) },
      normal(5, 1, of(5)),
      normal(6, 2, put('kept/1', 'changed')),
      normal(7, 2, { conditions: [], writes: [{ path: 'kept/2', value: null }] }),
      normal(8, 2, { conditions: [{ path: 'kept/3', revision: 77 }], writes: [{ path: 'kept/3', value: null }] }),
    ],
  });
  node.log.noteCommit(6);
  await applyFromLog(node, 4);
  await flush(node.machine);
  await node.close();
  return node.directory;
}

/** Writes a replication record into the flushed state, with a digest that includes it. */
async function writeReplicationRecord(directory: string, text: string): Promise<void> {
  const store = await StateStore.open(join(directory, 'generation-1/state'), () => undefined);
  const record = { value: Buffer.from(text), revision: store.metaAtOpen.appliedIndex };
  const digest = addToDigest(store.metaAtOpen.digest, recordDigest({ path: replicationName, ...record }));
  await store.write(new Map([[replicationName, record]]), { ...store.metaAtOpen, digest });
  await store.close();
}

const ownOf = (records: readonly string[]): string[] => records.filter((record) => !record.startsWith('\u0001'));

async function applyFromLog({ log, machine }: SnapshotNode, last: number): Promise<void> {
  for (const entry of await read(log, machine.applied.appliedIndex + 1, last)) machine.apply(entry);
}

const all = ['kept/1=changed', 'kept/3=value 3', 'kept/5=value 5'];
const flushed = ['kept/1=value 1', 'kept/2=value 2', 'kept/3=value 3'];

const logFile = (directory: string): string => join(directory, 'generation-1/log/0000000001.log');

/** Flips a bit of the record that holds `text`. */
function damage(file: string, text: string): void {
  const bytes = readFileSync(file);
  const at = bytes.indexOf(text);
  if (at < 0) throw new Error(`${file} does not hold ${text}`);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  writeFileSync(file, bytes);
}

const damageRecords = (directory: string): void => {
  const folder = join(directory, 'generation-1/state');
  // A later opening has moved the records into a table of LevelDB.
  const table = readdirSync(folder).find((name) => name.endsWith('.ldb'));
  damage(join(folder, table ?? ''), 'value 3');
};

describe('the state of a stopped node', () => {
  it('has every entry of the log applied, committed or not, and reports what is committed', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const found = await foundIn(directory);
      expect(found.records).to.deep.equal(all);
      expect(found).to.include({ nodeId: 7, clusterId: 'c', index: 8, term: 2, commitIndex: 6, storedIndex: 8 });
      expect(found.conf?.voters).to.deep.equal([7, 8, 9]);
      expect(Buffer.from(found.conf?.context ?? []).toString()).to.equal('members');
    }));

  it('does not change the node: its disk holds only committed records, and its uncommitted tail can still be superseded', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const before = await foundIn(directory);
      expect(await foundIn(directory), 'a second time').to.deep.equal(before);
      const node = await openNode(parent, 'node');
      expect(node.machine.flushedAtOpen).to.equal(4);
      expect(node.log.start).to.deep.include({ lastIndex: 8, incarnation: 4, hardState: { term: 2, vote: 0, commit: 6 } });
      await write(node.log, { hardState: { term: 3, vote: 0, commit: 6 }, entries: [normal(7, 3, put('other', 'x'))] });
      await node.close();
      expect(await foundIn(directory)).to.include({ index: 7, term: 3, commitIndex: 6 });
    }));

  it('belongs to no replication set if its replication record cannot be read, and keeps all other records', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const epochs = [1, 2 ** 48].map((number) => ({ number, id: 'ab'.repeat(16), start: 3 }));
      const state = { role: 'primary', set: 'cd'.repeat(16), local: [], epochs, index: 4, offset: 90, seen: 2 ** 48 };
      await writeReplicationRecord(directory, JSON.stringify({ format: 1, ...state }));
      const refused = await rejection(KeyValueMachine.open({ directory: join(directory, 'generation-1/state'), base: 0 }));
      expect(refused).to.be.instanceOf(StorageDamaged);
      expect((refused as Error).message)
        .to.include('malformed')
        .and.include('operator recover');
      const found = await foundIn(directory);
      expect(found.unreadableReplication).to.equal('the replication record is malformed');
      expect(ownOf(found.records), 'also entries of the log').to.deep.equal(all);
      expect(ownOf((await foundIn(directory, { withoutLog: true })).records)).to.deep.equal(flushed);
    }));

  it('counts flushed entries as committed, even above the recorded commit index', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const node = await openNode(parent, 'node');
      await applyFromLog(node, 8);
      await flush(node.machine);
      await node.close();
      expect(await foundIn(directory)).to.include({ index: 8, commitIndex: 8 });
    }));

  it('ends at the base when the log holds no entry above it', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const node = await openNode(parent, 'node');
      await applyFromLog(node, 8);
      await flush(node.machine);
      node.log.noteCommit(8);
      await compact(node.log, { ...base(8, 2), confIndex: 4 });
      await node.close();
      for (const options of [{}, { withoutLog: true }]) {
        const found = await foundIn(directory, options);
        expect(found.records).to.deep.equal(all);
        expect(found).to.include({ index: 8, term: 2, commitIndex: 8, storedIndex: 8 });
      }
    }));

  it('continues from the base of a snapshot', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const node = await openNode(parent, 'node');
      await applyFromLog(node, 6);
      await flush(node.machine);
      await compact(node.log, { ...base(5, 1), confIndex: 4 });
      await node.close();
      const found = await foundIn(directory);
      expect(found.records).to.deep.equal(all);
      expect(found).to.include({ index: 8, term: 2, commitIndex: 6 });
    }));

  it('needs withoutLog when the log is damaged, and then holds the flushed records and reports the missing entries', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      damage(logFile(directory), 'value 5');
      const before = readFileSync(join(directory, 'node.state'));
      const error = await rejection(foundIn(directory));
      expect(error).to.be.instanceOf(LogUnreadable);
      expect(error)
        .to.have.property('message')
        .that.matches(/^\/[^\n]+\.log ends with entry 4 although entry 8 was stored: [^\n]+\.$/);
      const found = await foundIn(directory, { withoutLog: true });
      expect(found.records).to.deep.equal(flushed);
      expect(found).to.include({ index: 4, term: undefined, conf: undefined, commitIndex: 6, storedIndex: 8 });
      expect(readFileSync(join(directory, 'node.state')).equals(before), 'node.state is as it was').to.equal(true);
      damageRecords(directory);
      expect(await rejection(foundIn(directory, { withoutLog: true }))).to.be.instanceOf(StorageDamaged);
    }));

  it('needs withoutLog when the disk fails to read the log', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const file = logFile(directory);
      rmSync(file);
      mkdirSync(file); // reading the file fails, as for a bad sector
      expect(await rejection(foundIn(directory))).to.be.instanceOf(LogUnreadable);
      expect((await foundIn(directory, { withoutLog: true })).records).to.deep.equal(flushed);
    }));

  it('is refused for a log of a later version, also withoutLog', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const bytes = readFileSync(logFile(directory));
      bytes.writeUInt32BE(99, 8);
      bytes.writeUInt32BE(crc32(bytes.subarray(16, segmentHeaderBytes), crc32(bytes.subarray(0, 12))), 12);
      writeFileSync(logFile(directory), bytes);
      const error = await rejection(foundIn(directory));
      expect(error).to.be.instanceOf(NewerFormat).and.not.instanceOf(LogUnreadable);
    }));

  it('needs withoutLog when the log ends before the applied index', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const folder = join(directory, 'generation-1/log');
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
      expect(await rejection(foundIn(directory))).to.be.instanceOf(LogUnreadable);
      expect((await foundIn(directory, { withoutLog: true })).records).to.deep.equal(flushed);
    }));

  it('needs withoutLog when log and term are older than the records', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const older = [join(directory, 'node.state'), logFile(directory)].map((file) => ({ file, bytes: readFileSync(file) }));
      const node = await openNode(parent, 'node');
      await write(node.log, { entries: [normal(9, 2, put('kept/9', 'value 9'))] });
      await applyFromLog(node, 9);
      await flush(node.machine);
      await node.close();
      for (const { file, bytes } of older) writeFileSync(file, bytes);
      const error = await rejection(foundIn(directory));
      expect(error).to.be.instanceOf(LogUnreadable);
      expect(error)
        .to.have.property('message')
        .that.matches(/ends with entry 8, and entry 9 was already applied/);
      const found = await foundIn(directory, { withoutLog: true });
      expect(found).to.include({ index: 9, term: undefined, commitIndex: 9, storedIndex: 9 });
      expect(found.records).to.deep.equal([...all, 'kept/9=value 9']);
    }));

  it('has all entries, however large they are', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const node = await openNode(parent, 'node');
      for (const index of [9, 10, 11, 12]) {
        const large = { path: `large/${index}`, value: Buffer.alloc(5_000_000) };
        await write(node.log, { entries: [normal(index, 2, { conditions: [], writes: [large] })] });
      }
      await node.close();
      const { records } = await withRecoveredState(directory, {}, ({ stream }) => inspectSnapshot(stream()));
      expect(records).to.equal(all.length + 4);
    }));

  for (const { what, harm } of [
    { what: 'its records are damaged', harm: damageRecords },
    {
      what: 'both copies of its term and vote are damaged',
      harm: (directory: string) => writeFileSync(join(directory, 'node.state'), Buffer.alloc(131_072)),
    },
    { what: 'node.state is missing', harm: (directory: string) => rmSync(join(directory, 'node.state')) },
  ])
    it(`is refused when ${what}, also withoutLog`, () =>
      inTemporaryDirectory(async (parent) => {
        const directory = await stoppedNode(parent);
        await foundIn(directory);
        harm(directory);
        for (const options of [{}, { withoutLog: true }]) {
          const error = await rejection(foundIn(directory, options));
          expect(error, JSON.stringify(options)).to.be.instanceOf(StorageDamaged).and.not.instanceOf(LogUnreadable);
        }
      }));

  it('is refused when the records are older than the beginning of the log', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const node = await openNode(parent, 'node');
      await applyFromLog(node, 6);
      await flush(node.machine);
      await compact(node.log, { ...base(6, 2), confIndex: 4 });
      await node.close();
      rmSync(join(directory, 'generation-1/state'), { recursive: true });
      for (const options of [{}, { withoutLog: true }])
        expect(await rejection(foundIn(directory, options)), JSON.stringify(options)).to.be.instanceOf(StorageDamaged);
    }));

  it('is refused while a node runs in the directory, and releases the directory afterwards in every case', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = await stoppedNode(parent);
      const node = await openNode(parent, 'node');
      for (const options of [{}, { withoutLog: true }])
        expect(await rejection(foundIn(directory, options)), JSON.stringify(options)).to.be.instanceOf(StorageInUse);
      await node.close();
      const failure = new StorageFailed('no room for the file');
      const failing = withRecoveredState(directory, {}, () => Promise.reject(failure));
      expect(await rejection(failing)).to.equal(failure);
      await (await openNode(parent, 'node')).close();
    }));

  it('is refused for a directory without a node, and creates nothing there', () =>
    inTemporaryDirectory(async (parent) => {
      for (const directory of [parent, join(parent, 'nowhere')])
        expect(await rejection(foundIn(directory))).to.be.instanceOf(StorageDamaged);
      expect(readdirSync(parent)).to.deep.equal([]);
    }));
});
