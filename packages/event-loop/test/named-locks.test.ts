import { expect } from 'chai';
import { NamedLocks } from '../src/named-locks.ts';

describe('NamedLocks', () => {
  /** A task that finishes or fails when the test says so, and the order in which tasks begin. */
  const begun: string[] = [];
  const task = (name: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const start = (): Promise<string> => {
      begun.push(name);
      return promise;
    };
    return { start, finish: () => resolve(name), fail: () => reject(new Error(name)) };
  };
  beforeEach(() => {
    begun.length = 0;
  });

  it('runs tasks of one name one after the other, also after one that fails', async () => {
    const locks = new NamedLocks();
    const [one, two, three] = [task('one'), task('two'), task('three')];
    const results = [one, two, three].map(({ start }) =>
      locks.run('a', start).then(
        (value) => value,
        (error: Error) => `failed: ${error.message}`,
      ),
    );
    two.finish();
    three.finish();
    await Promise.resolve();
    expect(begun).to.deep.equal(['one']);
    one.fail();
    expect(await Promise.all(results)).to.deep.equal(['failed: one', 'two', 'three']);
    expect(begun).to.deep.equal(['one', 'two', 'three']);
  });

  it('does not let a task wait for tasks of other names', async () => {
    const locks = new NamedLocks();
    const [blocked, free] = [task('blocked'), task('free')];
    const first = locks.run('a', blocked.start);
    free.finish();
    expect(await locks.run('b', free.start)).to.equal('free');
    blocked.finish();
    expect(await first).to.equal('blocked');
  });
});
