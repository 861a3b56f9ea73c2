import { expect } from 'chai';
import fc from 'fast-check';
import { SimClock, SimProcess, SimRandom } from '../../src/index.ts';

describe('SimClock', () => {
  it('runs tasks by time, and those of one time in the order of planning', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(8), { maxLength: 60 }), (delays) => {
        const clock = new SimClock();
        const ran: [number, number][] = [];
        for (const [i, delay] of delays.entries()) clock.after(delay, () => ran.push([delay, i]));
        clock.runFor(8);
        expect(ran).to.deep.equal([...delays.entries()].map(([i, delay]) => [delay, i]).sort(byTimeThenOrder));
      }),
    );
  });

  it('advances only with its tasks, by what a task spends, or to the end of a run', () => {
    const clock = new SimClock();
    const seen: number[] = [];
    clock.after(5, () => clock.spend(10));
    clock.after(7, () => seen.push(clock.now()));
    clock.runFor(100);
    expect(seen).to.deep.equal([15]);
    expect(clock.now()).to.equal(100);
  });

  it('repeats a task until its end, and no task outlives its process', () => {
    const clock = new SimClock();
    const process = new SimProcess(clock);
    let [ticks, tasks] = [0, 0];
    const end = process.every(10, () => ticks++);
    clock.runFor(35);
    end();
    clock.runFor(100);
    expect(ticks).to.equal(3);
    process.after(10, () => tasks++);
    process.kill();
    clock.runFor(100);
    expect(tasks).to.equal(0);
  });

  it('throws when an awaited condition never holds', () => {
    expect(() => new SimClock().runUntil(() => false)).to.throw(/holds in time/);
  });
});

const byTimeThenOrder = (a: (number | undefined)[], b: (number | undefined)[]): number =>
  (a[0] ?? 0) - (b[0] ?? 0) || (a[1] ?? 0) - (b[1] ?? 0);

describe('SimRandom', () => {
  const draw = (seed: number) => {
    const random = new SimRandom(seed);
    return Array.from({ length: 10_000 }, () => random.uint32());
  };

  it('repeats itself for a seed and differs between seeds', () => {
    expect(draw(7)).to.deep.equal(draw(7));
    expect(draw(7)).not.to.deep.equal(draw(8));
  });

  it('gives 32-bit integers that fill their range', () => {
    const drawn = draw(1);
    expect(drawn.every((x) => Number.isInteger(x) && x >= 0 && x < 2 ** 32)).to.equal(true);
    const mean = drawn.reduce((sum, x) => sum + x / drawn.length, 0);
    expect(mean / 2 ** 32).to.be.closeTo(0.5, 0.02);
    expect(new Set(drawn).size).to.be.above(9_990);
  });
});
