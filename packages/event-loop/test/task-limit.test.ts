import { expect } from 'chai';
import { TaskLimit } from '../src/index.ts';

/** Starts tasks that end when the test says so. */
function started(limit: TaskLimit, names: readonly string[]) {
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const results = names.map((name) =>
    limit.run(() => {
      begun.push(name);
      return new Promise<string>((resolve, reject) => {
        ends.set(name, (error) => (error === undefined ? resolve(name) : reject(error)));
      });
    }),
  );
  return { begun, results, end: (name: string, error?: Error) => ends.get(name)?.(error) };
}

describe('TaskLimit', () => {
  it('begins further tasks in order of arrival when earlier ones have ended', async () => {
    const limit = new TaskLimit(2);
    const { begun, results, end } = started(limit, ['a', 'b', 'c', 'd']);
    expect(begun).to.deep.equal(['a', 'b']);
    expect(limit.waiting).to.equal(2);
    end('b');
    expect(await results[1]).to.equal('b');
    expect(begun).to.deep.equal(['a', 'b', 'c']);
    end('a');
    await results[0];
    expect(begun).to.deep.equal(['a', 'b', 'c', 'd']);
    expect(limit.waiting).to.equal(0);
    end('c');
    end('d');
    await Promise.all(results);
  });

  it('gives the place of a failed task to the next task, and throws its error', async () => {
    const limit = new TaskLimit(1);
    const { begun, results, end } = started(limit, ['a', 'b']);
    const failure = new Error('a failed');
    end('a', failure);
    expect(await results[0]?.catch((error: unknown) => error)).to.equal(failure);
    expect(begun).to.deep.equal(['a', 'b']);
    end('b');
    expect(await results[1]).to.equal('b');
    const again = started(limit, ['c']);
    expect(again.begun).to.deep.equal(['c']);
    again.end('c');
    await Promise.all(again.results);
  });
});
