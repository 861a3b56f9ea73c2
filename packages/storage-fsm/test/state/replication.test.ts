import { join } from 'node:path';
import { expect } from 'chai';
import { clearRestores } from '../../src/snapshot/restore.ts';
import type { AppliedEntry } from '../../src/state/applied-entry.ts';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { encodeCommand } from '../../src/store/codec.ts';
import { addToDigest, emptyDigest, recordDigest } from '../../src/store/digest.ts';
import type { Cursor } from '../../src/store/replication-state.ts';
import type { ReplicatedRecord, ReplicationStep } from '../../src/store/replication-step.ts';
import type { RestoreStep } from '../../src/store/restore-step.ts';
import type { CommitResult } from '../../src/store/store.ts';
import type { Command } from '../../src/store/transaction.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';

const [set, first, second] = ['aa', 'b1', 'b2'].map((digits) => digits.repeat(16)) as [string, string, string];
const local = ['core/seal'];
const put = (path: string, value = 'x'): Command => ({ conditions: [], writes: [{ path, value: Buffer.from(value) }] });
const step = (replication: ReplicationStep): Command => ({ replication });
const epoch = { number: 1, id: first, start: 10 };
const cursor = (index: number): Cursor => ({ number: 1, id: first, index });

/** A machine that applies commands as entries. */
class Log {
  machine: KeyValueMachine;
  readonly #directory: string;

  private constructor(directory: string, machine: KeyValueMachine) {
    this.#directory = directory;
    this.machine = machine;
  }

  static async open(directory: string): Promise<Log> {
    return new Log(directory, await KeyValueMachine.open({ directory, base: 0 }));
  }

  apply(command: Command): CommitResult {
    const index = this.machine.applied.appliedIndex + 1;
    return this.machine.apply({ term: 1, index, type: 'normal', data: encodeCommand(command) });
  }

  applyAll(...commands: Command[]): CommitResult['outcome'][] {
    return commands.map((transaction) => this.apply(transaction).outcome);
  }

  /** Stages and swaps a state at an index of the first epoch. */
  receive(records: readonly ReplicatedRecord[], index: number): CommitResult['outcome'][] {
    const digest = records.map(recordDigest).reduce(addToDigest, emptyDigest);
    return this.applyAll(
      step({ kind: 'stage', attempt: `at-${index}`, chunk: 0, records }),
      step({
        ...{ kind: 'swap', attempt: `at-${index}`, records: records.length, digest, valuesWritten: 7 },
        ...{ epochs: [epoch], index, local: [], localReadAt: 0 },
      }),
    );
  }

  async reopen(): Promise<void> {
    await new Promise<void>((resolve, reject) => this.machine.flush((error) => (error ? reject(error) : resolve())));
    await this.machine.close();
    this.machine = await KeyValueMachine.open({ directory: this.#directory, base: 0 });
  }
}

const withLog = (use: (log: Log) => Promise<void> | void): Promise<void> =>
  inTemporaryDirectory(async (parent) => {
    const log = await Log.open(join(parent, 'state'));
    try {
      await use(log);
    } finally {
      await log.machine.close();
    }
  });

/** A secondary with one record, at index 20. */
const withSecondary = (use: (log: Log) => Promise<void> | void): Promise<void> =>
  withLog(async (log) => {
    log.applyAll(put('transit/old'), put('core/seal', 'own'), step({ kind: 'attach', set, local }));
    log.receive([{ path: 'transit/key', value: Buffer.from('v1'), revision: 15 }], 20);
    await use(log);
  });

describe('KeyValueMachine with replication', () => {
  it('replaces the replicated records by a received state, and keeps the local ones', () =>
    withSecondary(({ machine }) => {
      expect(machine.getSync('transit/old')).to.equal(undefined);
      expect(machine.getSync('transit/key')).to.deep.equal({ value: Buffer.from('v1'), revision: 15 });
      expect(machine.getSync('core/seal')?.value.toString()).to.equal('own');
      expect(machine.applied.valuesWritten).to.equal(7);
    }));

  it('refuses writes and restores of replicated records on a secondary, and takes local ones', () =>
    withSecondary((log) => {
      expect(log.applyAll(put('transit/key', 'mine'), put('core/seal', 'new'))).to.deep.equal(['conflict', 'committed']);
      const restore = { kind: 'stage', attempt: 'backup', chunk: 0, records: [] } as const;
      expect(log.apply({ restore }).outcome).to.equal('conflict');
      expect(log.machine.getSync('transit/key')?.value.toString()).to.equal('v1');
    }));

  it('refuses a restore whose cluster has become a primary while the backup was uploaded', () =>
    withLog((log) => {
      const restoring = (restore: RestoreStep): Command => ({ restore });
      const value = Buffer.from('of the backup');
      const stage = restoring({ kind: 'stage', attempt: 'backup', chunk: 0, records: [{ path: 'transit/key', value }] });
      const digest = recordDigest({ path: 'transit/key', value, revision: 0 });
      const swap = restoring({ kind: 'swap', attempt: 'backup', records: 1, digest, valuesWritten: 0, keep: [] });
      const establish = step({ kind: 'establish', set, id: first, local });
      expect(log.applyAll(put('transit/key', 'mine'), stage, establish, swap, stage)).to.deep.equal([
        ...['committed', 'committed', 'committed'],
        ...['conflict', 'committed'],
      ]);
      expect(log.machine.getSync('transit/key')?.value.toString()).to.equal('mine');
      expect(log.apply(restoring({ kind: 'abandon', attempt: 'backup' })).outcome).to.equal('committed');
    }));

  it('moves the position in the same entry as the records, once', () =>
    withSecondary((log) => {
      const writes = [{ path: 'transit/key', value: Buffer.from('v2'), revision: 22 }];
      const follow = step({ kind: 'follow', from: cursor(20), to: 25, writes, valuesWritten: 2, local: [] });
      expect(log.applyAll(follow, follow)).to.deep.equal(['committed', 'conflict']);
      expect(log.machine.replication?.index).to.equal(25);
      expect(log.machine.getSync('transit/key')).to.deep.equal({ value: Buffer.from('v2'), revision: 22 });
      expect(log.machine.applied.valuesWritten).to.equal(9);
    }));

  it('changes local records in the same entry as the position, unless they have changed meanwhile', () =>
    withSecondary((log) => {
      const writes = [{ path: 'transit/key', value: Buffer.from('v2'), revision: 22 }];
      const { revision = 0 } = log.machine.getSync('core/seal') ?? {};
      const following = (local: readonly ReplicatedRecord[]): Command =>
        step({ kind: 'follow', from: cursor(20), to: 25, writes, valuesWritten: 2, local });
      const seal = { path: 'core/seal', value: Buffer.from('rewrapped') };
      expect(
        log.applyAll(following([{ ...seal, revision: revision + 1 }]), following([{ ...seal, path: 'transit/x', revision: 0 }])),
      ).to.deep.equal(['conflict', 'conflict']);
      expect(log.apply(following([{ ...seal, revision }])).outcome).to.equal('committed');
      const index = log.machine.applied.appliedIndex;
      expect(log.machine.getSync('core/seal')).to.deep.equal({ value: Buffer.from('rewrapped'), revision: index });
      expect(log.machine.getSync('transit/key')).to.deep.equal({ value: Buffer.from('v2'), revision: 22 });
      expect(log.machine.applied.valuesWritten).to.equal(10);
    }));

  for (const [name, from, write] of [
    ['that begins elsewhere', cursor(21), { path: 'transit/key', revision: 23 }],
    ['of another epoch', { ...cursor(20), id: second }, { path: 'transit/key', revision: 23 }],
    ['with a revision after its end', cursor(20), { path: 'transit/key', revision: 26 }],
    ['with a revision that is not new', cursor(20), { path: 'transit/key', revision: 20 }],
    ['with a local record', cursor(20), { path: 'core/seal', revision: 23 }],
  ] as const)
    it(`refuses a follow step ${name}`, () =>
      withSecondary((log) => {
        const before = log.machine.applied.digest;
        const writes = [{ ...write, value: Buffer.from('v2') }];
        expect(log.apply(step({ kind: 'follow', from, to: 25, writes, valuesWritten: 1, local: [] })).outcome).to.equal(
          'conflict',
        );
        expect(log.machine.applied.digest).to.equal(before);
      }));

  it('refuses a state that is older than its own, or of a rival of its primary', () =>
    withSecondary((log) => {
      expect(log.receive([], 19)).to.deep.equal(['committed', 'conflict']);
      const rival = [{ number: 1, id: second, start: 10 }];
      const swap = {
        kind: 'swap',
        attempt: 'at-19',
        records: 0,
        digest: 0n,
        valuesWritten: 0,
        epochs: rival,
        index: 30,
        local: [],
        localReadAt: 0,
      } as const;
      expect(log.apply(step(swap)).outcome).to.equal('conflict');
      expect(log.machine.replication?.index).to.equal(20);
    }));

  it('gives revisions above every replicated one after a promotion', () =>
    withSecondary((log) => {
      expect(log.apply(step({ kind: 'promote', from: cursor(20), id: second, writes: [] })).outcome).to.equal('committed');
      expect(log.machine.replication).to.include({ role: 'primary', index: 21, seen: 2 });
      const written = log.apply({ ...put('transit/key', 'v2'), conditions: [{ path: 'transit/key', revision: 15 }] });
      expect(written).to.include({ outcome: 'committed', revision: 22 }).and.not.include({ index: 22 });
      expect(log.machine.getSync('transit/key')?.revision).to.equal(22);
      expect(
        log.applyAll(step({ kind: 'demote', from: epoch }), step({ kind: 'demote', from: { number: 2, id: second } })),
      ).to.deep.equal(['conflict', 'committed']);
      expect(log.apply(put('transit/key', 'late')).outcome).to.equal('conflict');
    }));

  it('serves its state as one of its own once it has left the set, with revisions above every replicated one', () =>
    withSecondary((log) => {
      const writes = [{ path: 'core/keyring', value: Buffer.from('one more key') }];
      expect(log.apply(step({ kind: 'leave', from: cursor(19), writes })).outcome, 'another position').to.equal('conflict');
      expect(log.apply(step({ kind: 'leave', from: cursor(20), writes })).outcome).to.equal('committed');
      expect(log.machine.replication).to.deep.include({ role: 'disabled', epochs: [], index: 0, seen: 1 });
      expect(log.machine.getSync('core/keyring')?.revision).to.equal(21);
      const written = log.apply({ ...put('transit/key', 'v2'), conditions: [{ path: 'transit/key', revision: 15 }] });
      expect(written).to.include({ outcome: 'committed', revision: 22 });
      expect(log.apply(step({ kind: 'leave', from: cursor(20), writes: [] })).outcome).to.equal('conflict');
      log.apply(step({ kind: 'establish', set, id: second, local }));
      expect(log.machine.replication?.epochs, 'a number that the set it has left never had').to.deep.equal([
        { number: 2, id: second, start: 24 },
      ]);
    }));

  it('writes local records together with a received state, and no other records', () =>
    withSecondary((log) => {
      const swapWith = (attempt: string, path: string, revision: number) => [
        step({ kind: 'stage', attempt, chunk: 0, records: [] }),
        step({
          ...{ kind: 'swap', attempt, records: 0, digest: emptyDigest, valuesWritten: 7, epochs: [epoch], index: 30 },
          ...{ local: [{ path, value: Buffer.from('new'), revision }], localReadAt: 0 },
        }),
      ];
      const { revision = 0 } = log.machine.getSync('core/seal') ?? {};
      expect(log.applyAll(...swapWith('one', 'transit/key', 15))).to.deep.equal(['committed', 'conflict']);
      expect(log.applyAll(...swapWith('late', 'core/seal', revision - 1)), 'it has changed').to.deep.equal([
        'committed',
        'conflict',
      ]);
      expect(log.applyAll(...swapWith('two', 'core/seal', revision))).to.deep.equal(['committed', 'committed']);
      const { appliedIndex, valuesWritten } = log.machine.applied;
      expect(log.machine.getSync('core/seal')).to.deep.equal({ value: Buffer.from('new'), revision: appliedIndex });
      expect(valuesWritten, 'a local value counts').to.equal(8);
    }));

  it('refuses a received state if a local record was created after the local ones were read', () =>
    withSecondary((log) => {
      const swapAt = (localReadAt: number) =>
        step({
          ...{ kind: 'swap', attempt: 'one', records: 0, digest: emptyDigest, valuesWritten: 7, epochs: [epoch], index: 30 },
          ...{ local: [], localReadAt },
        });
      const stage = step({ kind: 'stage', attempt: 'one', chunk: 0, records: [] });
      expect(log.applyAll(stage, put('core/seal/next', 'under the former keyring'))).to.deep.equal(['committed', 'committed']);
      const { appliedIndex } = log.machine.applied;
      expect(log.applyAll(swapAt(appliedIndex - 1), swapAt(appliedIndex))).to.deep.equal(['conflict', 'committed']);
    }));

  it('writes the first records of an epoch together with the promotion, so that older conditions no longer hold', () =>
    withSecondary((log) => {
      const promote = (path: string) =>
        step({ kind: 'promote', from: cursor(20), id: second, writes: [{ path, value: Buffer.from('new') }] });
      expect(log.apply(promote('core/seal')).outcome, 'a local record').to.equal('conflict');
      expect(log.apply(promote('transit/key')).outcome).to.equal('committed');
      expect(log.machine.getSync('transit/key')).to.deep.equal({ value: Buffer.from('new'), revision: 21 });
      expect(log.machine.applied.valuesWritten).to.equal(8);
      const late = { ...put('transit/other'), conditions: [{ path: 'transit/key', revision: 15 }] };
      expect(log.apply(late).outcome).to.equal('conflict');
    }));

  it('is superseded by a higher epoch and by a rival, but not by a lower one or itself', () =>
    withLog((log) => {
      log.apply(step({ kind: 'establish', set, id: first, local }));
      const by = (number: number, id: string) => step({ kind: 'supersede', by: { number, id } });
      expect(log.apply(by(1, first)).outcome).to.equal('conflict');
      expect(log.apply(by(1, second)).outcome).to.equal('committed');
      expect(log.machine.replication?.role).to.equal('superseded');
      expect(log.apply(put('transit/key')).outcome).to.equal('conflict');
    }));

  it('disables replication on a primary, but not on a cluster that has the records of a set', async () => {
    await withSecondary((log) => {
      expect(log.apply(step({ kind: 'disable' })).outcome).to.equal('conflict');
    });
    await withLog((log) => {
      log.applyAll(step({ kind: 'establish', set, id: first, local }), step({ kind: 'disable' }));
      expect(log.machine.replication?.role).to.equal('disabled');
      expect(log.apply(put('transit/key')).outcome).to.equal('committed');
      log.apply(step({ kind: 'establish', set, id: second, local }));
      expect(log.machine.replication?.epochs.at(-1)?.number, 'never the same number again').to.equal(2);
    });
  });

  it('keeps its place over a restart', () =>
    withSecondary(async (log) => {
      const before = log.machine.replication;
      await log.reopen();
      expect(log.machine.replication).to.deep.equal(before);
      expect(log.apply(put('transit/key')).outcome).to.equal('conflict');
    }));

  it('computes the same digest of the replicated records on both sides, counted or summed up', () =>
    withSecondary(async (log) => {
      const written = { path: 'transit/other', value: Buffer.from('v1'), revision: 23 };
      const gone = { path: 'transit/key', value: null, revision: 24 };
      log.apply(step({ kind: 'follow', from: cursor(20), to: 25, writes: [written, gone], valuesWritten: 1, local: [] }));
      expect(log.machine.scopeDigestAt(25), 'counted since the swap').to.equal(recordDigest(written));
      await log.reopen();
      log.apply(put('core/seal', 'changed'));
      expect(log.machine.scopeDigestAt(25), 'not known after a restart').to.equal(undefined);
      await log.machine.measureScope();
      expect(log.machine.scopeDigestAt(25), 'summed up').to.equal(recordDigest(written));
    }));

  it('deletes what a received state replaced, and leaves the state that is being received', () =>
    withSecondary(async (log) => {
      const replica = { commit: async (command: Command) => log.apply(command) };
      log.apply(step({ kind: 'stage', attempt: 'next', chunk: 0, records: [] }));
      expect(await clearRestores(replica, log.machine)).to.equal(1);
      expect(log.machine.restoring).to.equal('next');
      log.apply(step({ kind: 'promote', from: cursor(20), id: second, writes: [] }));
      await clearRestores(replica, log.machine);
      expect(log.machine.restoring, 'nothing sends it any longer').to.equal(undefined);
    }));

  it('reports each entry, and the position after another state began', () =>
    withLog(async (log) => {
      const seen: unknown[] = [];
      const observer = {
        entry: ({ index, command, committed, before, after }: AppliedEntry) =>
          void seen.push([
            index,
            command && ('replication' in command ? command.replication.kind : 'writes' in command && command.writes.length),
            committed,
            before?.role,
            after?.role,
          ]),
        state: (position: number | undefined) => void seen.push(position),
      };
      log.machine.observe(observer);
      log.applyAll(put('transit/key'), step({ kind: 'attach', set, local }), put('transit/key'));
      log.machine.apply({ term: 1, index: 4, type: 'noop', data: Buffer.alloc(0) });
      log.receive([], 20);
      expect(seen).to.deep.equal([
        undefined,
        [1, 1, true, undefined, undefined],
        [2, 'attach', true, undefined, 'secondary'],
        [3, 1, false, 'secondary', 'secondary'],
        [4, undefined, true, 'secondary', 'secondary'],
        [5, 'stage', true, 'secondary', 'secondary'],
        [6, 'swap', true, 'secondary', 'secondary'],
      ]);
      await log.reopen();
      log.machine.observe(observer);
      expect(seen.at(-1)).to.equal(20);
    }));

  it('reads the replicated records of one flush, with their position', () =>
    withSecondary(async (log) => {
      expect(log.machine.replicatedSnapshot(), 'nothing is on disk yet').to.equal(undefined);
      await log.reopen();
      const writes = [{ path: 'transit/key', value: Buffer.from('v2'), revision: 21 }];
      log.apply(step({ kind: 'follow', from: cursor(20), to: 21, writes, valuesWritten: 1, local: [] }));
      const snapshot = log.machine.replicatedSnapshot();
      const records = [];
      for await (const page of snapshot?.pages() ?? []) records.push(...page);
      expect(records).to.deep.equal([{ path: 'transit/key', value: Buffer.from('v1'), revision: 15 }]);
      expect(snapshot).to.include({ index: 20, valuesWritten: 7 });
      expect(snapshot?.state).to.include({ role: 'secondary', index: 20 });
      expect(snapshot?.get('core/seal')?.value.toString()).to.equal('own');
      await snapshot?.close();
    }));
});
