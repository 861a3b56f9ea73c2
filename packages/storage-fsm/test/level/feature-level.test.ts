import { join } from 'node:path';
import type { Entry } from '@transitd/raft-core';
import { expect } from 'chai';
import { UnsupportedLevel } from '../../src/level/feature-levels.ts';
import { decodeLevel, encodeLevel } from '../../src/level/level-record.ts';
import { KeyValueMachine, type KeyValueMachineOptions } from '../../src/state/key-value-machine.ts';
import { LocalReplica } from '../../src/state/local-replica.ts';
import { decodeCommand, encodeCommand, encodeTransaction } from '../../src/store/codec.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { rejection } from '../store/store.suite.ts';

const next = { oldest: 1, newest: 2 };
const raise = (index: number, level: number): Entry => normal(index, encodeCommand({ raise: level }));
const put = (index: number, value: string): Entry =>
  normal(index, encodeTransaction({ conditions: [], writes: [{ path: 'a', value: Buffer.from(value) }] }));
const normal = (index: number, data: Uint8Array): Entry => ({ term: 1, index, type: 'normal', data });
/** An entry in a format that no release has. */
const unknown = (index: number): Entry => normal(index, Buffer.from('ee0102', 'hex'));

const flush = (machine: KeyValueMachine): Promise<number> =>
  new Promise((resolve, reject) => machine.flush((error, flushed) => (error ? reject(error) : resolve(flushed))));

const open = (directory: string, options: Partial<KeyValueMachineOptions> = {}): Promise<KeyValueMachine> =>
  KeyValueMachine.open({ directory: join(directory, 'state'), base: 0, levels: next, ...options });

describe('the feature level', () => {
  it('is encoded as pinned, in the entry and in the record', () => {
    expect(encodeCommand({ raise: 0x01020304 }).toString('hex')).to.equal('0301020304');
    expect(decodeCommand(Buffer.from('0300000007', 'hex'))).to.deep.equal({ raise: 7 });
    expect(encodeLevel(5).toString('hex')).to.equal('0100000005');
    expect([decodeLevel(undefined), decodeLevel(encodeLevel(9))]).to.deep.equal([1, 9]);
    for (const record of ['', '01', '0200000005', '0100000000', '010000000500'])
      expect(() => decodeLevel(Buffer.from(record, 'hex')), record).to.throw(/level record/);
  });

  it('is not encoded together with anything else, and not out of its range', () => {
    const writes = [{ path: 'a', value: null }];
    expect(() => encodeCommand({ conditions: [], writes, raise: 2 })).to.throw(TypeError);
    expect(() => encodeCommand({ restore: { kind: 'abandon', attempt: 'x' }, raise: 2 })).to.throw(TypeError);
    for (const level of [0, 1.5, 2 ** 32, Number.NaN])
      expect(() => encodeCommand({ raise: level }), `${level}`).to.throw(TypeError);
  });

  it('rises with an entry, never falls, and survives a restart', () =>
    inTemporaryDirectory(async (directory) => {
      const machine = await open(directory);
      expect(machine.featureLevel).to.equal(1);
      const { digest } = machine.applied;
      expect(machine.apply(raise(1, 2))).to.deep.equal({ outcome: 'committed', index: 1, revision: 1 });
      expect(machine.featureLevel).to.equal(2);
      expect(machine.applied.digest, 'nodes at different levels have different digests').not.to.equal(digest);
      expect(machine.apply(raise(2, 2)).outcome, 'raised twice').to.equal('committed');
      expect(machine.apply(raise(3, 1)).outcome, 'lowered').to.equal('conflict');
      expect(machine.featureLevel).to.equal(2);
      await flush(machine);
      await machine.close();
      const again = await open(directory);
      expect(again.featureLevel).to.equal(2);
      await again.close();
    }));

  it('is seen by no reader of records', () =>
    inTemporaryDirectory(async (directory) => {
      const machine = await open(directory);
      machine.apply(raise(1, 2));
      machine.apply(put(2, 'x'));
      expect(machine.getSync('\u0001level')).to.equal(undefined);
      expect((await machine.paths({ prefix: '' })).paths).to.deep.equal(['a']);
      expect(await machine.unreachableNames(10)).to.deep.equal([]);
      await machine.close();
    }));

  it('keeps an entry in a format of a later release from having any effect, and from ending the node', () =>
    inTemporaryDirectory(async (directory) => {
      const machine = await open(directory);
      machine.apply(put(1, 'x'));
      const { digest, valuesWritten } = machine.applied;
      expect(machine.apply(unknown(2))).to.deep.equal({ outcome: 'conflict', index: 2, revision: 2 });
      expect(machine.applied).to.deep.equal({ appliedIndex: 2, digest, valuesWritten });
      expect(machine.apply(put(3, 'y')).outcome).to.equal('committed');
      await machine.close();
    }));

  it('ends a node that cannot apply entries under a raised level, without applying or storing the raise', () =>
    inTemporaryDirectory(async (directory) => {
      const older = await open(directory, { levels: { oldest: 1, newest: 1 } });
      older.apply(put(1, 'x'));
      expect(() => older.apply(raise(2, 2))).to.throw(
        UnsupportedLevel,
        'the cluster, since log entry 2, is at feature level 2, and this program supports levels 1 to 1: run a release that supports level 2',
      );
      expect(older.applied.appliedIndex).to.equal(1);
      await older.close();
    }));

  it('keeps a node from opening data above or below the levels that it supports', () =>
    inTemporaryDirectory(async (directory) => {
      const machine = await open(directory);
      machine.apply(raise(1, 2));
      await flush(machine);
      await machine.close();
      for (const [levels, remedy] of [
        [{ oldest: 1, newest: 1 }, 'run a release that supports level 2: a cluster cannot go back below its level'],
        [{ oldest: 3, newest: 4 }, 'first run a release that supports level 2 and a later one, and raise the level'],
      ] as const) {
        const error = await rejection(open(directory, { levels }));
        expect(error).to.be.instanceOf(UnsupportedLevel);
        expect((error as Error).message).to.contain(remedy);
      }
    }));

  it('does not keep a node without entries from opening: it gets the level from the log or from a snapshot', () =>
    inTemporaryDirectory(async (directory) => {
      const machine = await open(directory, { levels: { oldest: 2, newest: 3 } });
      machine.apply(raise(1, 2));
      expect(machine.apply(put(2, 'x')).outcome).to.equal('committed');
      await machine.close();
    }));

  it('ends a node that has to apply entries below the levels that it supports', () =>
    inTemporaryDirectory(async (directory) => {
      const machine = await open(directory, { levels: { oldest: 2, newest: 3 } });
      expect(() => machine.apply(put(1, 'x'))).to.throw(UnsupportedLevel, 'the log entry 1 is at feature level 1');
      await machine.close();
    }));

  it('ends a node that receives a snapshot at a level that it does not support', () =>
    inTemporaryDirectory(async (directory) => {
      const newer = await open(join(directory, 'newer'));
      newer.apply(raise(1, 2));
      await flush(newer);
      await newer.close();
      const failures: Error[] = [];
      const older = await open(join(directory, 'older'), {
        levels: { oldest: 1, newest: 1 },
        onFailure: (error) => failures.push(error),
      });
      const error = await rejection(older.openReplacement(join(directory, 'newer', 'state')));
      expect(error).to.be.instanceOf(UnsupportedLevel);
      expect(failures).to.deep.equal([error]);
      await older.close();
    }));

  it('keeps a replica from proposing a transaction that the level does not allow', async () => {
    const machine = { featureLevel: 0 } as unknown as KeyValueMachine;
    const consensus = { propose: () => expect.fail('proposed'), readIndex: () => {}, status: () => expect.fail() };
    const replica = new LocalReplica({ consensus, machine, diskLow: () => false });
    expect(await rejection(replica.commit({ conditions: [], writes: [] }))).to.be.instanceOf(TypeError);
  });
});
