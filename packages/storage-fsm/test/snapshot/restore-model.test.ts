import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { decodeCommand, encodeCommand } from '../../src/store/codec.ts';
import { addToDigest, emptyDigest } from '../../src/store/digest.ts';
import { restoredDigest } from '../../src/store/restore-step.ts';
import type { Command } from '../../src/store/transaction.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { restoring, stage, swap } from './restore-steps.ts';
import { apply, flush, shownState } from './snapshot-nodes.ts';

const textOf = (machine: KeyValueMachine, path: string): string | undefined => {
  const record = machine.getSync(path);
  return record && Buffer.from(record.value).toString();
};

/** A plain model of the records that every reader sees. */
class Model {
  live = new Map<string, string>();
  #staged: { id: string; chunks: number; records: Map<string, string>; count: number } | undefined;
  #done: string | undefined;

  apply(command: Command): void {
    const restore = 'restore' in command ? command.restore : undefined;
    for (const { path, value } of 'writes' in command ? command.writes : [])
      value === null ? this.live.delete(path) : this.live.set(path, Buffer.from(value).toString());
    if (restore?.kind === 'stage' && restore.attempt !== this.#done) {
      if (this.#staged?.id !== restore.attempt && restore.chunk === 0)
        this.#staged = { id: restore.attempt, chunks: 0, records: new Map(), count: 0 };
      const staged = this.#staged;
      if (staged?.id !== restore.attempt || staged.chunks !== restore.chunk) return;
      staged.chunks += 1;
      staged.count += restore.records.length;
      for (const { path, value } of restore.records) staged.records.set(path, Buffer.from(value).toString());
    }
    if (restore?.kind === 'abandon' && this.#staged?.id === restore.attempt) this.#staged = undefined;
    if (restore?.kind === 'swap' && this.#staged?.id === restore.attempt && restore.attempt !== this.#done) {
      const { records, count } = this.#staged;
      const sum = [...records]
        .map(([path, value]) => restoredDigest({ path, value: Buffer.from(value) }))
        .reduce(addToDigest, emptyDigest);
      if (count !== records.size || sum !== restore.digest || records.size !== restore.records) return;
      const isKept = (path: string) => restore.keep.some((prefix) => path.startsWith(prefix));
      const kept = [...this.live].filter(([path]) => isKept(path));
      this.live = new Map([...[...records].filter(([path]) => !isKept(path)), ...kept]);
      this.#staged = undefined;
      this.#done = restore.attempt;
    }
  }
}

const pool = ['a', 'a/b', 'b', 'b/c', 'keep/1', 'keep/2', 'z'];
const somePairs = fc.uniqueArray(fc.tuple(fc.constantFrom(...pool), fc.constantFrom('1', '2')), {
  selector: ([path]) => path,
  maxLength: 4,
});
const someKeep = fc.constantFrom<string[]>([], ['keep/'], ['a', 'keep/'], ['keep/1'], ['b']);
const someStep = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constantFrom(...pool), fc.constantFrom('3', null)).map(
      ([path, value]): Command => ({
        conditions: [],
        writes: [{ path, value: value === null ? null : Buffer.from(value) }],
      }),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constantFrom('x', 'y'), fc.nat(2), somePairs).map(([id, chunk, pairs]) => stage(id, chunk, ...pairs)),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.stringMatching(/^[a-f]{4}$/), somePairs, someKeep)
      .map(([id, pairs, keep]) => [stage(id, 0, ...pairs), swap(id, pairs, keep)]),
  },
  { weight: 1, arbitrary: fc.constantFrom('x', 'y').map((attempt) => restoring({ kind: 'abandon', attempt })) },
  { weight: 2, arbitrary: fc.constantFrom('flush' as const, 'reopen' as const, 'sweep' as const) },
);

describe('records through restores', () => {
  it('match the plain model, with equal digests on a node that flushes, restarts or sweeps at other times', async () => {
    let swaps = 0;
    let swept = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(someStep, { minLength: 5, maxLength: 25 }), (steps) =>
        inTemporaryDirectory(async (parent) => {
          const open = (name: string) => KeyValueMachine.open({ directory: join(parent, name), base: 0 });
          let first = await open('first');
          const second = await open('second');
          const model = new Model();
          const commit = (command: Command): void => {
            const notified: unknown[] = [];
            const end = first.watch('', (changes) => notified.push(changes));
            const encoded = decodeCommand(encodeCommand(command));
            const before = JSON.stringify([...model.live].sort());
            model.apply(encoded);
            apply(first, encoded);
            apply(second, encoded);
            end();
            const restore = 'restore' in command ? command.restore : undefined;
            if (restore?.kind === 'swap' && notified.length > 0) swaps += 1;
            else if (restore !== undefined) expect(notified).to.deep.equal([]);
            if (JSON.stringify([...model.live].sort()) !== before) expect(notified).to.have.length(1);
          };
          for (const step of steps) {
            if (step === 'flush') await flush(first);
            else if (step === 'reopen') {
              await flush(first);
              await first.close();
              first = await open('first');
            } else if (step === 'sweep') {
              const names = await first.unreachableNames(3);
              expect(await second.unreachableNames(3)).to.deep.equal(names);
              swept += names.length;
              commit(restoring({ kind: 'sweep', names: [...names, 'a', 'keep/1', '\u000200000001/a'] }));
            } else for (const transaction of [step].flat()) commit(transaction);
            const expected = [...model.live.keys()].sort().map((path) => `${path}=${model.live.get(path)}`);
            for (const machine of [first, second]) {
              const shown = (await shownState(machine)).map((text) => text.slice(0, text.indexOf('@')));
              expect(shown).to.deep.equal(expected);
              expect(pool.map((path) => textOf(machine, path))).to.deep.equal(pool.map((path) => model.live.get(path)));
              const below = await machine.range({ prefix: 'keep/', after: 'keep/1', limit: 1 });
              expect(below.records.map(({ path }) => path)).to.deep.equal(model.live.has('keep/2') ? ['keep/2'] : []);
            }
            expect(first.applied).to.deep.equal(second.applied);
          }
          await flush(first);
          expect(await first.checkDigest()).to.include({ sound: true, digest: second.applied.digest });
          for (let names = await first.unreachableNames(2); names.length > 0; names = await first.unreachableNames(2))
            commit(restoring({ kind: 'sweep', names }));
          await first.close();
          await second.close();
        }),
      ),
      { numRuns: 60 },
    );
    expect(swaps).to.be.above(50);
    expect(swept).to.be.above(15);
  });
});
