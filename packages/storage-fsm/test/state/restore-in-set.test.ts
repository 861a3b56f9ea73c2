import { join } from 'node:path';
import { expect } from 'chai';
import type { AppliedEntry } from '../../src/state/applied-entry.ts';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { encodeCommand } from '../../src/store/codec.ts';
import { recordDigest } from '../../src/store/digest.ts';
import type { ReplicationStep } from '../../src/store/replication-step.ts';
import type { Command } from '../../src/store/transaction.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';

type Restore = ReplicationStep & { readonly kind: 'restore' };

const [set, first, second] = ['aa', 'b1', 'b2'].map((digits) => digits.repeat(16)) as [string, string, string];
const step = (replication: ReplicationStep): Command => ({ replication });
const put = (path: string, text: string): Command => ({ conditions: [], writes: [{ path, value: Buffer.from(text) }] });

/** A primary with the records `core/keyring` at revision 3 and `local/own` at revision 5, which has staged a backup by entry 6. */
async function withStaged(use: (primary: Staged) => void): Promise<void> {
  await inTemporaryDirectory(async (parent) => {
    const machine = await KeyValueMachine.open({ directory: join(parent, 'state'), base: 0 });
    const primary = new Staged(machine);
    try {
      use(primary);
    } finally {
      await machine.close();
    }
  });
}

class Staged {
  readonly machine: KeyValueMachine;
  readonly #record = { path: 'transit/key', value: Buffer.from('of the backup') };

  constructor(machine: KeyValueMachine) {
    this.machine = machine;
    this.apply(step({ kind: 'establish', set, id: first, local: ['local/'] }));
    this.apply(put('core/keyring', 'present'));
    this.apply(put('transit/key', 'present'));
    this.apply(put('local/own', 'present'));
    this.apply({
      restore: { kind: 'stage', attempt: 'backup', chunk: 0, records: [this.#record] },
    });
  }

  apply(command: Command): string {
    const index = this.machine.applied.appliedIndex + 1;
    const { outcome } = this.machine.apply({ term: 1, index, type: 'normal', data: encodeCommand(command) });
    this.machine.publish();
    return outcome;
  }

  end(changed: Partial<Restore> = {}): string {
    return this.apply(
      step({
        ...{ kind: 'restore', from: { number: 1, id: first }, attempt: 'backup', records: 1 },
        ...{ digest: recordDigest({ ...this.#record, revision: 0 }), valuesWritten: 9 },
        conditions: [{ path: 'core/keyring', revision: 2 }],
        writes: [
          { path: 'core/keyring', value: Buffer.from('of the backup, with a new key') },
          { path: 'core/absent', value: null },
        ],
        local: [{ path: 'local/own', value: Buffer.from('under the new key'), revision: 4 }],
        ...{ localReadAt: 5, ...changed },
      }),
    );
  }

  text(path: string): string | undefined {
    return this.machine.getSync(path)?.value.toString();
  }
}

describe('a restore on the primary of a replication set', () => {
  it('replaces the replicated records in one entry, and writes the kept records with them', () =>
    withStaged((primary) => {
      const seen: (readonly unknown[])[] = [];
      primary.machine.observe({
        entry: ({ after }: AppliedEntry) => void seen.push([after?.restoredAt, primary.text('transit/key')]),
        state: () => undefined,
      });
      let changes: unknown;
      primary.machine.watch('', (all) => {
        changes = all;
      });
      expect(primary.end()).to.equal('committed');
      expect(seen).to.deep.equal([[6, 'of the backup']]);
      expect(changes).to.equal('everything');
      expect(primary.text('core/keyring')).to.equal('of the backup, with a new key');
      expect(primary.text('local/own')).to.equal('under the new key');
      expect(primary.machine.getSync('core/keyring')?.revision).to.equal(6);
      expect(primary.machine.applied.valuesWritten).to.equal(12);
      expect(primary.end(), 'proposed again').to.equal('committed');
      expect(primary.machine.replication).to.include({ role: 'primary', restoredAt: 6 });
    }));

  for (const [what, before, changed] of [
    ['a record on which it depends has changed', put('core/keyring', 'rotated'), {}],
    ['a local record has changed', put('local/own', 'changed'), {}],
    ['a local record was created', put('local/other', 'new'), {}],
    ['another attempt has begun', stage('other'), {}],
    ['it is of another epoch', undefined, { from: { number: 1, id: second } }],
    ['it would write a local record as a replicated one', undefined, { writes: [{ path: 'local/other', value: null }] }],
    ['other records were staged', undefined, { records: 2 }],
    ['this cluster is no longer the primary', step({ kind: 'demote', from: { number: 1, id: first } }), {}],
  ] as const)
    it(`has no effect if ${what}`, () =>
      withStaged((primary) => {
        if (before !== undefined) primary.apply(before);
        expect(primary.end(changed)).to.equal('conflict');
        expect(primary.text('transit/key')).to.equal('present');
      }));

  it('is not ended by the step of a restore outside of a set', () =>
    withStaged((primary) => {
      const digest = recordDigest({ path: 'transit/key', value: Buffer.from('of the backup'), revision: 0 });
      const swap = { kind: 'swap', attempt: 'backup', records: 1, digest, valuesWritten: 0, keep: ['local/'] } as const;
      expect(primary.apply({ restore: swap })).to.equal('conflict');
    }));
});

function stage(attempt: string): Command {
  return { restore: { kind: 'stage', attempt, chunk: 0, records: [] } };
}
