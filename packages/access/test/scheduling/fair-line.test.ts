import { expect } from 'chai';
import fc from 'fast-check';
import { FairLine } from '../../src/scheduling/fair-line.ts';

describe('a fair line', () => {
  it('gives callers turns, and keeps the order of each', () => {
    const line = new FairLine<string>(10);
    for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) line.add(item.slice(0, 1), item);
    expect(Array.from({ length: 7 }, () => line.take())).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined]);
    expect(line.size).to.equal(0);
  });

  it('passes over callers that may not have a turn', () => {
    const line = new FairLine<string>(10);
    for (const item of ['a1', 'b1', 'a2']) line.add(item.slice(0, 1), item);
    expect(line.take((caller) => caller !== 'a')).to.equal('b1');
    expect(line.take((caller) => caller !== 'a')).to.equal(undefined);
    expect(line.take()).to.equal('a1');
  });

  it('takes from the caller with the most when it is full, and refuses a caller that has the most itself', () => {
    const line = new FairLine<string>(3);
    for (const item of ['a1', 'a2', 'a3']) expect(line.add('a', item)).to.equal(undefined);
    expect(line.add('b', 'b1')).to.equal('a3');
    expect(line.add('a', 'a4')).to.equal('a4');
    expect([line.take(), line.take(), line.take()]).to.deep.equal(['a1', 'b1', 'a2']);
  });

  it('never holds more than it may, and a caller waits for at most one item of each other caller', () => {
    const item = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.boolean());
    fc.assert(
      fc.property(fc.array(item, { maxLength: 60 }), fc.integer({ min: 1, max: 12 }), (steps, waitingMax) => {
        const line = new FairLine<{ caller: string }>(waitingMax);
        const waiting: { caller: string }[] = [];
        const turnsOfOthers = new Map<string, Set<string>>();
        for (const [caller, comes] of steps) {
          if (comes) {
            const added = { caller };
            waiting.push(added);
            const lost = line.add(caller, added);
            if (lost !== undefined) waiting.splice(waiting.indexOf(lost), 1);
          } else {
            const taken = line.take();
            expect(taken === undefined).to.equal(waiting.length === 0);
            if (taken === undefined) continue;
            expect(taken).to.equal(waiting.find((each) => each.caller === taken.caller));
            waiting.splice(waiting.indexOf(taken), 1);
            turnsOfOthers.delete(taken.caller);
            for (const other of new Set(waiting.map((each) => each.caller))) {
              if (other === taken.caller) continue;
              const seen = turnsOfOthers.get(other) ?? new Set();
              expect(seen.has(taken.caller), `${taken.caller} twice before ${other}`).to.equal(false);
              turnsOfOthers.set(other, seen.add(taken.caller));
            }
          }
          for (const waiter of turnsOfOthers.keys())
            if (!waiting.some((each) => each.caller === waiter)) turnsOfOthers.delete(waiter);
          expect(line.size).to.equal(waiting.length).and.to.be.at.most(waitingMax);
        }
      }),
    );
  });
});
