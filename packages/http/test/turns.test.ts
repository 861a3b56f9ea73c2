import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { Turns } from '../src/turns.ts';

describe('turns of the event loop', () => {
  /** A clock that the work itself moves, and turns that end when the test says so. */
  const made = () => {
    const clock = { ms: 0 };
    const ends: (() => void)[] = [];
    const turns = new Turns({ now: () => clock.ms, afterTurn: (task) => void ends.push(task) });
    /** Ends this turn; resolves when all that it has let in has done its work. */
    const endTurn = async (): Promise<void> => {
      for (const end of ends.splice(0)) end();
      await turn();
    };
    /** Work of so many milliseconds, behind a few promises as a request's is. */
    const done: string[] = [];
    const work = async (name: string, ms: number): Promise<void> => {
      await turns.next();
      for (let step = 0; step < 5; step += 1) await undefined;
      clock.ms += ms;
      done.push(name);
    };
    return { turns, work, endTurn, done };
  };

  it('begin work at once as long as there is time left in this one', async () => {
    const { turns, work, done } = made();
    for (let n = 0; n < 100; n += 1) await work(String(n), 0.04);
    expect(done).to.have.length(100);
    expect(turns.next()).to.equal(undefined);
    expect(turns.waiting).to.equal(0);
  });

  it('let in as much as fits into each, in the order of arrival', async () => {
    const { turns, work, endTurn, done } = made();
    await work('long', 6);
    for (const name of 'abcdefg') void work(name, 2);
    await turn();
    expect(done).to.deep.equal(['long']);
    await endTurn();
    expect(done.slice(1)).to.deep.equal(['a', 'b', 'c']);
    void work('late', 2);
    await endTurn();
    expect(done.slice(4)).to.deep.equal(['d', 'e', 'f']);
    await endTurn();
    expect(done.slice(7)).to.deep.equal(['g', 'late']);
    await endTurn();
    expect(turns.waiting).to.equal(0);
  });

  it('do one piece each where a piece takes longer than a turn should', async () => {
    const { work, endTurn, done } = made();
    for (const name of 'abc') void work(name, 50);
    await turn();
    expect(done).to.deep.equal(['a', 'b', 'c']); // all of them began before any of them had cost anything
    for (const name of 'def') void work(name, 50);
    for (const expected of ['abcd', 'abcde', 'abcdef']) {
      await endTurn();
      expect(done.join('')).to.equal(expected);
    }
  });
});
