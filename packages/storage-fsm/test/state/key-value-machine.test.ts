import { join } from 'node:path';
import { type Entry, InvariantViolation } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { StorageDamaged, StorageFailed } from '../../src/errors.ts';
import { armFailpoints } from '../../src/failpoint.ts';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { encodeTransaction } from '../../src/store/codec.ts';
import { addToDigest, emptyDigest, recordDigest } from '../../src/store/digest.ts';
import { memoryStore } from '../../src/store/memory-store.ts';
import { comparePaths } from '../../src/store/path.ts';
import type { PathPage, Replica } from '../../src/store/store.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { paths, somePath, someTransaction } from '../store/arbitraries.ts';
import { rejection } from '../store/store.suite.ts';

const normal = (index: number, transaction: Transaction): Entry => ({
  term: 1,
  index,
  type: 'normal',
  data: encodeTransaction(transaction),
});
const put = (path: string, value: string): Transaction => ({ conditions: [], writes: [{ path, value: Buffer.from(value) }] });

const flush = (machine: KeyValueMachine): Promise<number> =>
  new Promise((resolve, reject) => {
    machine.flush((error, flushed) => (error === undefined ? resolve(flushed) : reject(error)));
  });

const withMachine = (use: (machine: KeyValueMachine, reopen: () => Promise<KeyValueMachine>) => Promise<void>): Promise<void> =>
  inTemporaryDirectory(async (parent) => {
    const open = () => KeyValueMachine.open({ directory: join(parent, 'state'), base: 0 });
    let machine = await open();
    const reopen = async () => {
      await machine.close();
      machine = await open();
      return machine;
    };
    await use(machine, reopen).finally(() => machine.close());
  });

async function digestOf(store: Pick<Replica, 'range'>): Promise<bigint> {
  const { records } = await store.range({ prefix: '' });
  return records.map(recordDigest).reduce(addToDigest, emptyDigest);
}

type Step =
  | { readonly do: 'commit'; readonly transaction: Transaction }
  | { readonly do: 'flush' | 'settle' | 'reopen' }
  | { readonly do: 'range'; readonly prefix: string; readonly after: string; readonly limit: number };

const someStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('commit' as const), transaction: someTransaction({ revisionMax: 20 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('flush' as const, 'settle' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('range' as const),
      prefix: fc.constantFrom('', 'a', 'a/', 'b/'),
      after: fc.oneof(fc.constant(''), somePath),
      limit: fc.integer({ min: 1, max: 4 }),
    }),
  },
);

describe('KeyValueMachine', () => {
  it('reads like a plain map, whatever is flushed, being flushed, or applied while a range is read', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(someStep, { maxLength: 40 }), (steps) =>
        withMachine(async (first, reopen) => {
          let machine = first;
          const model = memoryStore();
          const watched: unknown[] = [];
          const expectedWatched: unknown[] = [];
          machine.watch('a/', (changes) => watched.push(changes));
          model.watch('a/', (changes) => expectedWatched.push(changes));
          let flushing: Promise<unknown> | undefined;
          const ranges: [Promise<unknown>, Promise<unknown>][] = [];
          const pathPages: [limit: number, page: Promise<PathPage>, all: Promise<PathPage>][] = [];

          for (const step of steps) {
            if (step.do === 'commit') {
              const result = await model.commit(step.transaction);
              expect(machine.apply(normal(result.index, step.transaction))).to.deep.equal(result);
              machine.publish();
            } else if (step.do === 'flush') {
              flushing ??= flush(machine).finally(() => {
                flushing = undefined;
              });
            } else if (step.do === 'settle') {
              await flushing;
            } else if (step.do === 'range') {
              ranges.push([machine.range(step), model.range(step)]);
              const { prefix, after } = step;
              pathPages.push([step.limit, machine.paths(step), model.paths({ prefix, after })]);
            } else {
              await flushing;
              await flush(machine);
              await Promise.all([...ranges.flat(), ...pathPages.map(([, page]) => page)]);
              machine = await reopen();
              machine.watch('a/', (changes) => watched.push(changes));
            }
            for (const path of paths) expect(machine.getSync(path)).to.deep.equal(await model.get(path));
          }

          for (const [found, expected] of ranges) expect(await found).to.deep.equal(await expected);
          for (const [limit, page, all] of pathPages) {
            const { paths: found, next } = await page;
            const expected = (await all).paths.filter((path) => next === undefined || comparePaths(path, next) <= 0);
            expect(found).to.deep.equal(expected);
            expect(found.length).to.be.at.most(limit);
          }
          expect(watched).to.deep.equal(expectedWatched);
          const { appliedIndex, valuesWritten } = model.status();
          expect(machine.applied).to.deep.equal({ appliedIndex, valuesWritten, digest: await digestOf(model) });
          await flushing;
        }),
      ),
      { numRuns: 150 },
    );
  });

  it('reads a page at one applied index while entries are applied and flushed', () =>
    withMachine(async (machine) => {
      const everywhere = (value: string): Transaction => ({
        conditions: [],
        writes: Array.from({ length: 900 }, (_, i) => ({ path: `k/${i}`, value: Buffer.from(value.repeat(100)) })),
      });
      machine.apply(normal(1, everywhere('a')));
      const pages = [machine.range({ prefix: 'k/' })];
      const flushed = flush(machine);
      pages.push(machine.range({ prefix: 'k/' }));
      await flushed;
      pages.push(machine.range({ prefix: 'k/' }));
      machine.apply(normal(2, everywhere('b')));
      await flush(machine);
      const revisions = (await Promise.all(pages)).map(({ records }) => new Set(records.map(({ revision }) => revision)));
      expect(revisions).to.deep.equal([new Set([1]), new Set([1]), new Set([1])]);
      expect(new Set((await machine.range({ prefix: 'k/' })).records.map(({ revision }) => revision))).to.deep.equal(
        new Set([2]),
      );
    }));

  it('advances the applied index for noop and conf entries without changing records', () =>
    withMachine(async (machine, reopen) => {
      machine.apply({ term: 1, index: 1, type: 'noop', data: Buffer.alloc(0) });
      machine.apply({ term: 1, index: 2, type: 'conf', data: Buffer.from('{}') });
      expect(await flush(machine)).to.equal(2);
      const again = await reopen();
      expect(again.flushedAtOpen).to.equal(2);
      expect(again.applied).to.deep.equal({ appliedIndex: 2, valuesWritten: 0, digest: emptyDigest });
    }));

  it('opens at the last flush, and the log replays later entries', () =>
    withMachine(async (machine, reopen) => {
      machine.apply(normal(1, put('a', '1')));
      await flush(machine);
      machine.apply(normal(2, put('a', '2')));
      const again = await reopen();
      expect(again.flushedAtOpen).to.equal(1);
      expect(again.getSync('a')?.value.toString()).to.equal('1');
      again.apply(normal(2, put('a', '2')));
      expect(again.applied.digest).to.equal(recordDigest({ path: 'a', value: Buffer.from('2'), revision: 2 }));
    }));

  it('holds no pending bytes once everything is flushed, and keeps writes made during a flush', () =>
    withMachine(async (machine) => {
      expect(machine.pendingBytes).to.equal(0);
      machine.apply(normal(1, put('a', '1')));
      machine.apply(normal(2, put('b', '1')));
      expect(machine.pendingBytes).to.be.above(0);
      const first = flush(machine);
      machine.apply(normal(3, put('a', '2')));
      expect(await first).to.equal(2);
      expect(machine.flushedIndex).to.equal(2);
      expect(machine.pendingBytes).to.be.above(0);
      await flush(machine);
      expect(machine.pendingBytes).to.equal(0);
      expect(machine.getSync('a')?.revision).to.equal(3);
    }));

  it('stops at an entry that is not a transaction, as every node does', () =>
    withMachine(async (machine) => {
      expect(() => machine.apply({ term: 1, index: 1, type: 'normal', data: Buffer.from([1, 9]) })).to.throw(InvariantViolation);
    }));

  for (const index of [0, 1, 3]) {
    it(`refuses to apply entry ${index} after entry 1`, () =>
      withMachine(async (machine) => {
        machine.apply(normal(1, put('a', '1')));
        expect(() => machine.apply(normal(index, put('a', '2')))).to.throw(InvariantViolation);
      }));
  }

  it('stops when a listener throws, since its cache may be stale', () =>
    withMachine(async (machine) => {
      machine.watch('', () => {
        throw new Error('cannot drop it');
      });
      machine.apply(normal(1, put('a', '1')));
      expect(() => machine.publish()).to.throw('cannot drop it');
    }));

  it('reports the changes of entries that are applied together in one call, in their order', () =>
    withMachine(async (machine) => {
      const seen: unknown[] = [];
      machine.watch('a', (changes) => seen.push(changes));
      machine.watch('b', () => seen.push('b'));
      machine.apply(normal(1, put('a', '1')));
      machine.apply(normal(2, put('c', '1')));
      machine.apply(normal(3, { conditions: [{ path: 'a', revision: 9 }], writes: [{ path: 'a', value: null }] }));
      machine.apply(normal(4, { conditions: [], writes: [{ path: 'a', value: null }] }));
      machine.apply(normal(5, put('a/b', '1')));
      expect(seen, 'before').to.deep.equal([]);
      machine.publish();
      machine.publish();
      const [created, deleted] = [false, true].map((gone) => ({ path: 'a', revision: gone ? 4 : 1, deleted: gone }));
      expect(seen).to.deep.equal([[created, deleted, { path: 'a/b', revision: 5, deleted: false }]]);
    }));

  it('keeps the digest of each entry, also of entries that are applied together', () =>
    withMachine(async (machine) => {
      const digests = [1, 2, 3].map((index) => {
        machine.apply(normal(index, put(`k${index}`, 'v')));
        return machine.applied.digest;
      });
      machine.publish();
      expect([1, 2, 3].map((index) => machine.digestAt(index))).to.deep.equal(digests);
      expect(new Set(digests).size).to.equal(3);
    }));

  it('calls back after flush() has returned, and allows one flush at a time', () =>
    withMachine(async (machine) => {
      let returned = false;
      const flushed = flush(machine).then(() => expect(returned).to.equal(true));
      expect(() => machine.flush(() => {})).to.throw(InvariantViolation);
      returned = true;
      await flushed;
    }));

  for (const failpoint of ['state.before_flush', 'state.after_flush']) {
    it(`reports an error at ${failpoint} to the caller of flush()`, () =>
      withMachine(async (machine) => {
        machine.apply(normal(1, put('a', '1')));
        armFailpoints(`${failpoint}=error`);
        const error = await rejection(flush(machine)).finally(() => armFailpoints(undefined));
        expect(error).to.be.instanceOf(StorageFailed);
        expect(machine.flushedIndex).to.equal(0);
      }));
  }

  it('reports its first failure once, and closing is not a failure', () =>
    inTemporaryDirectory(async (directory) => {
      const failures: Error[] = [];
      const machine = await KeyValueMachine.open({ directory, base: 0, onFailure: (error) => failures.push(error) });
      machine.apply(normal(1, put('a', '1')));
      armFailpoints('state.before_flush=error');
      const failure = await rejection(flush(machine)).finally(() => armFailpoints(undefined));
      expect(() => machine.getSync('b')).to.throw(StorageFailed);
      expect(failures).to.deep.equal([failure]);
      await machine.close();

      const sound = await KeyValueMachine.open({ directory, base: 0, onFailure: (error) => failures.push(error) });
      await sound.close();
      expect(() => sound.getSync('b')).to.throw(StorageFailed, 'closed');
      expect(failures).to.have.length(1);
    }));

  it("is damaged if it ends below the log's base", () =>
    inTemporaryDirectory(async (parent) => {
      const directory = join(parent, 'state');
      const machine = await KeyValueMachine.open({ directory, base: 0 });
      machine.apply(normal(1, put('a', '1')));
      await flush(machine);
      await machine.close();
      await (await KeyValueMachine.open({ directory, base: 1 })).close();
      const error = await rejection(KeyValueMachine.open({ directory, base: 2 }));
      expect(error).to.be.instanceOf(StorageDamaged);
      expect(error).to.have.property('message').that.contains('ends at index 1');
    }));
});
