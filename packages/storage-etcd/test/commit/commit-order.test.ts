import { expect } from 'chai';
import { CommitOrder } from '../../src/commit/commit-order.ts';

const turns = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

describe('the order of commits', () => {
  it('holds a commit back until earlier ones of the same path have left, in the order of their calls', async () => {
    const order = new CommitOrder();
    const entered: string[] = [];
    const enter = (name: string, paths: ReadonlySet<string> | 'all') =>
      order.enter(paths).then((leave) => {
        entered.push(name);
        return leave;
      });
    const first = enter('first', new Set(['a', 'b']));
    const second = enter('second', new Set(['b', 'c']));
    const third = enter('third', new Set(['c']));
    const other = enter('other', new Set(['d']));
    await turns();
    expect(entered).to.deep.equal(['first', 'other']);
    (await first)();
    (await second)();
    (await third)();
    await other;
    expect(entered).to.deep.equal(['first', 'other', 'second', 'third']);
  });

  it('lets a commit of all paths run alone', async () => {
    const order = new CommitOrder();
    const entered: string[] = [];
    const before = await order.enter(new Set(['a']));
    const all = order.enter('all').then((leave) => {
      entered.push('all');
      return leave;
    });
    const after = order.enter(new Set(['b'])).then(() => entered.push('after'));
    await turns();
    expect(entered).to.deep.equal([]);
    before();
    await turns();
    expect(entered).to.deep.equal(['all']);
    (await all)();
    await after;
    expect(entered).to.deep.equal(['all', 'after']);
  });
});
