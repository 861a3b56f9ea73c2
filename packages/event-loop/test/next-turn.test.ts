import { expect } from 'chai';
import { accessTurns, nextTurn } from '../src/next-turn.ts';
import { TimeSlice } from '../src/time-slice.ts';

describe('nextTurn', () => {
  it('continues one caller in each turn of the event loop, in order of arrival', async () => {
    const done: string[] = [];
    const work = async (name: string): Promise<void> => {
      for (let piece = 0; piece < 3; piece += 1) {
        await nextTurn();
        done.push(name);
      }
    };
    const all = Promise.all(['a', 'b', 'c'].map(work));
    const atEachTurn: number[] = [];
    while (done.length < 9) {
      await new Promise((resolve) => setImmediate(resolve));
      atEachTurn.push(done.length);
    }
    await all;
    expect(done.join('')).to.equal('abcabcabc');
    for (const [turn, count] of atEachTurn.entries()) expect(count - (atEachTurn[turn - 1] ?? 0)).to.be.at.most(1);
  });
});

describe('accessTurns', () => {
  it('lets a policy that is compiled continue in the next turn, however much cryptography waits', async () => {
    let worked = 0;
    const work = Promise.all(Array.from({ length: 100 }, () => nextTurn().then(() => worked++)));
    const slice = new TimeSlice(accessTurns);
    for (let piece = 0; piece < 5; piece += 1) await slice.next();
    expect(worked).to.be.below(10);
    await work;
  });
});
