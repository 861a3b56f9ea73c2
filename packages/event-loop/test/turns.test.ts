import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { Turns } from '../src/turns.ts';

describe('Turns', () => {
  /** A clock that the work itself moves, and turns that the test ends. */
  const made = () => {
    const clock = { ms: 0 };
    const ends: (() => void)[] = [];
    const turns = new Turns({ now: () => clock.ms, afterTurn: (task) => void ends.push(task) });
    /** Ends this turn. Resolves when all requests that began in it have done their work. */
    const endTurn = async (): Promise<void> => {
      for (const end of ends.splice(0)) end();
      await turn();
    };
    /** Work of some milliseconds after a few promises, like that of a request. */
    const done: string[] = [];
    const work = async (name: string, ms: number): Promise<void> => {
      await turns.next();
      for (let step = 0; step < 5; step += 1) await undefined;
      clock.ms += ms;
      done.push(name);
    };
    return { turns, work, endTurn, done };
  };

  it('lets work begin at once while there is time left in the turn', async () => {
    const { turns, work, done } = made();
    for (let n = 0; n < 100; n += 1) await work(String(n), 0.04);
    expect(done).to.have.length(100);
    expect(turns.next()).to.equal(undefined);
    expect(turns.waiting).to.equal(0);
  });

  it('lets as much work begin as fits into each turn, in order of arrival', async () => {
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

  it('lets one request begin in each turn if each takes longer than a turn', async () => {
    const { work, endTurn, done } = made();
    for (const name of 'abc') void work(name, 50);
    await turn();
    expect(done).to.deep.equal(['a', 'b', 'c']); // all requests began before any of them had taken time
    for (const name of 'def') void work(name, 50);
    for (const expected of ['abcd', 'abcde', 'abcdef']) {
      await endTurn();
      expect(done.join('')).to.equal(expected);
    }
  });
});
