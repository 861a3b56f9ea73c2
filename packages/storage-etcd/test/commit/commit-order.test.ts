import { expect } from 'chai';
import { CommitOrder } from '../../src/commit/commit-order.ts';

const turns = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

/** A transaction that compares and writes these paths, one letter each. */
const touching = (compared: string, written: string) => ({
  conditions: [...compared].map((path) => ({ path, revision: 1 })),
  writes: [...written].map((path) => ({ path, value: new Uint8Array() })),
});

describe('the order of commits', () => {
  const cases = [
    { first: touching('', 'a'), second: touching('', 'a'), waits: true, does: 'write the same path' },
    { first: touching('', 'a'), second: touching('a', 'b'), waits: true, does: 'compare a path that the first one writes' },
    { first: touching('a', 'b'), second: touching('', 'a'), waits: true, does: 'write a path that the first one compares' },
    { first: touching('a', 'b'), second: touching('a', 'c'), waits: false, does: 'compare the same path' },
    { first: touching('', 'a'), second: touching('', 'b'), waits: false, does: 'touch other paths' },
    { first: touching('', 'a'), second: 'all' as const, waits: true, does: 'touch all paths' },
    { first: 'all' as const, second: touching('', 'a'), waits: true, does: 'follow one that touches all paths' },
  ];
  for (const { first, second, waits, does } of cases)
    it(`${waits ? 'holds back' : 'lets in at once'} commits that ${does}`, async () => {
      const order = new CommitOrder();
      const leave = await order.enter(first);
      let isIn = false;
      void order.enter(second).then(() => {
        isIn = true;
      });
      await turns();
      expect(isIn).to.equal(!waits);
      leave();
      await turns();
      expect(isIn).to.equal(true);
    });

  it('lets commits of one path in one by one, in the order of their calls', async () => {
    const order = new CommitOrder();
    const entered: number[] = [];
    const leaves = [0, 1, 2].map((n) =>
      order.enter(touching('', 'a')).then((leave) => {
        entered.push(n);
        return leave;
      }),
    );
    for (const [n, leave] of leaves.entries()) {
      await turns();
      expect(entered).to.have.length(n + 1);
      (await leave)();
    }
    expect(entered).to.deep.equal([0, 1, 2]);
  });
});
