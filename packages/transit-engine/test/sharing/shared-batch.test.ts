import type { TimeSlice } from '@transitd/event-loop';
import { expect } from 'chai';
import fc from 'fast-check';
import { columnsOf, objectsOf } from '../../src/sharing/columns.ts';
import type { BatchPart, IdleThread } from '../../src/sharing/other-threads.ts';
import { runShared } from '../../src/sharing/shared-batch.ts';

interface Item {
  readonly text: string;
}
interface Result {
  readonly made: string;
}

const head = { mountId: 'm', prefix: 'svc', key: { name: 'k', id: 'i', revision: 7 }, operation: 'encrypt' };
const itemsOf = (count: number): Item[] => Array.from({ length: count }, (_, n) => ({ text: `item ${n}` }));
const resultsOf = (items: readonly Item[], first: number, by: string): Result[] =>
  items.map(({ text }, n) => ({ made: `${text} at ${first + n} by ${by}` }));

/** How a thread treats a part. */
type Behavior = 'answers' | 'refuses' | 'hangs' | 'answers too few';

/** Runs a batch; in each round the next list of threads is idle. */
async function run(count: number, rounds: readonly (readonly Behavior[])[]) {
  const parts: BatchPart[] = [];
  const own: number[] = [];
  const threadOf = (behavior: Behavior, n: number): IdleThread => ({
    run: (part) => {
      parts.push(part);
      const results = resultsOf(objectsOf(part.items) as Item[], part.first, `thread ${n}`);
      if (behavior === 'hangs') return new Promise(() => undefined);
      if (behavior === 'refuses') return Promise.resolve(undefined);
      return Promise.resolve(columnsOf(behavior === 'answers' ? results : results.slice(1)));
    },
  });
  let round = 0;
  const results = await runShared<Item, Result>({
    items: itemsOf(count),
    head,
    others: () => (rounds[round++] ?? []).map(threadOf),
    run: async (items: readonly Item[], first: number, _slice: TimeSlice) => {
      own.push(items.length);
      return resultsOf(items, first, 'this thread');
    },
  });
  return { results, parts, own };
}

const withoutThread = (results: readonly Result[]): string[] => results.map(({ made }) => made.replace(/ by .*/, ''));
const expected = (count: number): string[] => withoutThread(resultsOf(itemsOf(count), 0, 'anybody'));

describe('a batch that threads share', () => {
  it('has the result of each item at its place, whatever the other threads do', async () => {
    const behavior = fc.constantFrom<Behavior>('answers', 'refuses', 'answers too few');
    const rounds = fc.array(fc.array(behavior, { maxLength: 4 }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 3000 }), rounds, async (count, idle) => {
        expect(withoutThread((await run(count, idle)).results)).to.deep.equal(expected(count));
      }),
    );
  });

  it('waits for no thread that hangs', async () => {
    const { results, own } = await run(600, [['answers', 'hangs']]);
    expect(withoutThread(results)).to.deep.equal(expected(600));
    expect(own).to.deep.equal([200, 200]);
    expect(results[250]?.made).to.equal('item 250 at 250 by thread 0');
    expect(results[450]?.made).to.equal('item 450 at 450 by this thread');
  });

  it('is divided equally, in parts of at least 200 and at most 500 items', async () => {
    const answers = (threads: number): Behavior[] => Array.from({ length: threads }, () => 'answers');
    const sizes = async (count: number, rounds: number[]) => {
      const { own, parts } = await run(count, rounds.map(answers));
      return { own, given: parts.map(({ items }) => items.count) };
    };
    expect(await sizes(399, [3])).to.deep.equal({ own: [399], given: [] });
    expect(await sizes(400, [3])).to.deep.equal({ own: [200], given: [200] });
    expect(await sizes(1000, [1])).to.deep.equal({ own: [500], given: [500] });
    expect(await sizes(1201, [1, 0])).to.deep.equal({ own: [500, 201], given: [500] });
  });

  it('gives each part with the state of the key and the position of its first item', async () => {
    const { parts } = await run(800, [['answers', 'answers', 'answers']]);
    expect(parts.map(({ items: _, ...rest }) => rest)).to.deep.equal([200, 400, 600].map((first) => ({ ...head, first })));
  });

  it('gives no part with long texts', async () => {
    const parts: BatchPart[] = [];
    const items = Array.from({ length: 400 }, () => ({ text: 'x'.repeat(3000) }));
    const others = () => [
      {
        run: async (part: BatchPart) => {
          parts.push(part);
          return undefined;
        },
      },
    ];
    const results = await runShared<Item, Result>({
      ...{ items, head, others },
      run: async (some, first) => resultsOf(some, first, 'this thread'),
    });
    expect([results.length, parts.length]).to.deep.equal([400, 0]);
  });

  it('ends with the error of this thread', async () => {
    const failing = runShared<Item, Result>({
      ...{ items: itemsOf(400), head, others: () => [{ run: () => new Promise(() => undefined) }] },
      run: () => Promise.reject(new Error('the keys are closed')),
    });
    expect(await failing.catch((error: Error) => error.message)).to.equal('the keys are closed');
  });
});
