import fc from 'fast-check';
import type { Transaction } from '../../src/store/transaction.ts';

/** A few similar paths, so that transactions overlap; some sort differently in UTF-16 and UTF-8. */
export const paths: readonly string[] = ['a', 'a/b', 'a/b/c', 'a/\uffff', 'a/\u{1f511}', 'a0', 'b/\ufeff', 'b/é', 'c'];

export const somePath = fc.constantFrom(...paths);

export const someTransaction = ({ revisionMax }: { revisionMax: number }): fc.Arbitrary<Transaction> =>
  fc.record({
    conditions: fc.array(fc.record({ path: somePath, revision: fc.nat(revisionMax) }), { maxLength: 2 }),
    writes: fc.uniqueArray(fc.record({ path: somePath, value: fc.option(fc.uint8Array({ maxLength: 40 })) }), {
      maxLength: 4,
      selector: ({ path }) => path,
    }),
  });
